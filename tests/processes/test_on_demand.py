"""An executor that is made when the first step needs it."""

from collections.abc import Sequence

from onnxbuild.core.ports import Done, Executor, Host, Job
from onnxbuild.processes.on_demand import ExecutorOnDemand
from tests.fakes.world import FakeHost


class _Recorder:
    """Notes what is asked of it."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def hosts(self) -> Sequence[Host]:
        raise AssertionError

    def expect(self) -> None:
        self.calls.append("expect")

    def start(self, job: Job) -> None:
        raise AssertionError(job)

    def wait(self, timeout_s: float) -> list[Done]:
        self.calls.append(f"wait {timeout_s}")
        return []

    def close(self) -> None:
        self.calls.append("close")


def test_an_executor_that_no_step_needed_is_never_made() -> None:
    made: list[Executor] = []

    def make() -> Executor:
        made.append(_Recorder())
        return made[-1]

    here = FakeHost()
    executor = ExecutorOnDemand(here, make)
    assert [*executor.hosts()] == [here]
    executor.close()
    assert made == []


def test_it_is_made_once_and_receives_every_call() -> None:
    recorder, made = _Recorder(), 0

    def make() -> Executor:
        nonlocal made
        made += 1
        return recorder

    executor = ExecutorOnDemand(FakeHost(), make)
    executor.expect()
    assert executor.wait(0.5) == []
    executor.close()
    assert made == 1
    assert recorder.calls == ["expect", "wait 0.5", "close"]
