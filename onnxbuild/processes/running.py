"""Hold a running job to its time and memory; describe a fork server that does not answer."""

import time
from dataclasses import dataclass, field
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.core.event import StepProgress
from onnxbuild.core.ports import Job
from onnxbuild.processes.job_results import too_much_memory
from onnxbuild.processes.process_group import held_bytes, kill_group
from onnxbuild.processes.progress_file import FIRST_S, read_progress

LOADING_S = 60.0
"""Time to load the frameworks, whatever a step may take."""
ENDING_S = 60.0
"""Time until the end of a killed step is reported: a machine frees a few GiB of memory a second, and may be busy."""
STOPPED_S = 3.0
"""The same of a fork server that a signal has stopped, which reports nothing."""
PROGRESS_S = 0.25
"""Time between two looks at how far a step is."""
SIGN_OF_LIFE_S = 10.0
"""Time after which a step that says nothing is reported to run."""


@dataclass(slots=True)
class Running:
    """A job from its request to its end.

    Attributes:
        job: What was asked for.
        folder: The job's folder.
        since_s: When it was requested; then when it was started; then when it was killed.
        pid: Its process; 0 until it is started.
        killed_for: Why it was killed; None if it was not.
        peak_bytes: The most memory that it was seen to hold.
        said: Its last report of how far it is.
        looked_s: When that was last looked for.
        heard_s: When something was last passed on.
    """

    job: Job
    folder: Path
    since_s: float
    pid: int = 0
    killed_for: StepError | None = None
    peak_bytes: int = 0
    said: StepProgress | None = None
    looked_s: float = 0.0
    heard_s: float = field(default_factory=time.monotonic)

    def progress(self, now_s: float) -> StepProgress | None:
        """Return how far the step is, if it has said so since this was last asked; now and then, that it runs.

        Args:
            now_s: By the monotonic clock.
        """
        if now_s - self.looked_s < PROGRESS_S or now_s - self.since_s < FIRST_S:
            return None
        self.looked_s = now_s
        said = read_progress(self.folder, self.job.step.name)
        is_new = said is not None and said != self.said
        if is_new or now_s - self.heard_s > SIGN_OF_LIFE_S:
            self.said, self.heard_s = said, now_s
            return said if is_new else StepProgress(self.job.step.name, 0, 0, "")
        return None

    def hold_to(self, timeout_s: float, memory_bytes: int, now_s: float) -> None:
        """Kill the job if it takes too much time or memory."""
        if not self.pid or self.killed_for:
            return
        self.peak_bytes = max(self.peak_bytes, held_bytes(self.pid))
        if now_s - self.since_s > timeout_s:
            self.killed_for = StepError(
                f"stopped: it ran longer than {timeout_s:g} s (--timeout)",
                where=self.job.step.name,
                fix=f"give it longer: `--timeout {2 * timeout_s:g}`",
            )
        elif self.peak_bytes > memory_bytes:
            self.killed_for = too_much_memory(self.job, self.peak_bytes, memory_bytes)
        if self.killed_for:
            kill_group(self.pid)
            self.since_s = now_s

    def is_overdue(
        self, timeout_s: float, now_s: float, *, is_loaded: bool, fork_server: int
    ) -> bool:
        """Return whether the fork server should have reported its start, or its end after a kill.

        Args:
            timeout_s: What a step may take.
            now_s: By the monotonic clock.
            is_loaded: The fork server has loaded the frameworks.
        """
        if self.killed_for:
            silent_s = now_s - self.since_s
            return silent_s > ENDING_S or (silent_s > STOPPED_S and _is_stopped(fork_server))
        limit_s = timeout_s if is_loaded else max(timeout_s, LOADING_S)
        return not self.pid and now_s - self.since_s > limit_s


def silence(pid: int, *, is_loaded: bool) -> str:
    """Return what is wrong with a fork server that does not answer.

    Args:
        is_loaded: It has loaded the frameworks.
    """
    name = f"the process that starts steps ({pid})"
    if _is_stopped(pid):
        return f"{name} was stopped by a signal and gave no answer"
    if is_loaded:
        return f"{name} gave no answer"
    return f"{name} did not finish importing the frameworks"


def _is_stopped(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[:1] == ["T"]
