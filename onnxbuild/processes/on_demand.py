"""An executor that is made when the first step needs it: most runs find that nothing has to run."""

from collections.abc import Callable

from onnxbuild.core.ports import Done, Executor, Host, Job


class ExecutorOnDemand:
    """Run jobs in an executor that is made at the first call.

    Args:
        host: The machine that it uses.
    """

    def __init__(self, host: Host, make: Callable[[], Executor]) -> None:
        self._hosts = (host,)
        self._make = make
        self._made: Executor | None = None

    def hosts(self) -> tuple[Host, ...]:
        """Return the machine."""
        return self._hosts

    def expect(self) -> None:
        """Make the executor, and let it get ready."""
        self._executor().expect()

    def start(self, job: Job) -> None:
        """Run a job."""
        self._executor().start(job)

    def wait(self, timeout_s: float) -> list[Done]:
        """Return the jobs that ended, after waiting at most `timeout_s` for one."""
        return self._executor().wait(timeout_s)

    def close(self) -> None:
        """Stop whatever still runs; nothing does if no executor was made."""
        if self._made is not None:
            self._made.close()

    def _executor(self) -> Executor:
        if self._made is None:
            self._made = self._make()
        return self._made
