"""Find why a step gives other bytes: run it again, one thing of its surroundings changed at a time."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from onnxbuild.adapters.machine import usable_cores
from onnxbuild.adapters.toolchain.step_environment import ORDINARY, StepEnvironment
from onnxbuild.building.wiring import RunOptions, make_executor, open_workspace
from onnxbuild.core.event import Notice
from onnxbuild.core.ports import EventSink, Job
from onnxbuild.reproduction.variations import described, one_by_one

_POLL_S = 0.2
_LONGEST_S = 3600.0  # for all trials together; more is for the user to ask for
_TRIALS_MAX = 8

Made = Mapping[str, str] | str  # output -> sha256 of the artifact; or why the step failed


@dataclass(frozen=True, slots=True)
class Cause:
    """Cause of a difference: what a step's output depends on.

    Attributes:
        what: A sentence.
        fix: What to change in the code.
    """

    what: str
    fix: str


@dataclass(frozen=True, slots=True)
class Suspect:
    """A step that a fresh build made in another way.

    Attributes:
        stored: What the store has of it.
        here: The step in the project.
        there: The step in the fresh copy.
        original: The project's root.
        copies: Make a copy of the project in another folder, each time it is called, and return
            its root; the first is the copy that the step differed in.
        wall_s: How long it ran.
    """

    stored: Made
    here: Job
    there: Job
    original: Path
    copies: Callable[[], Path]
    wall_s: float


@dataclass(frozen=True, slots=True)
class _Plan:
    """One trial: how it is called, the surroundings, the project's root if it is a copy."""

    said: str
    around: StepEnvironment
    project: Path | None = None
    temp: str = "trial"


def find_cause(
    suspect: Suspect, around: StepEnvironment, store: Path, options: RunOptions, events: EventSink
) -> Cause | None:
    """Find what makes the step differ, by running it alone.

    Args:
        around: The surroundings that it differed in.
        store: A store that has the step's inputs; the trials' outputs go there, too.
        options: How to use the machine.
        events: Receives the events of each build.

    Returns: None if that would take longer than an hour.
    """
    if suspect.wall_s * _TRIALS_MAX > _LONGEST_S:
        return None
    return _Trials(suspect, store, options, events).cause(around)


class _Trials:
    def __init__(
        self, suspect: Suspect, store: Path, options: RunOptions, events: EventSink
    ) -> None:
        self._suspect = suspect
        self._store = store
        self._options = options
        self._events = events

    def cause(self, around: StepEnvironment) -> Cause:
        """Ordinary surroundings first, then one change after the other, some at a time."""
        stored = self._suspect.stored
        changes = {name: one for name, one in one_by_one(around).items() if one != ORDINARY}
        plans = [_Plan("ordinary surroundings", ORDINARY)]
        for name, one in changes.items():
            project = self._suspect.copies() if name == "folder" else None
            plans.append(_Plan(described(one)[name], one, project))
        at_a_time = self._options.jobs or usable_cores()
        made: list[Made] = []
        for start in range(0, len(plans), at_a_time):
            made += self._made(plans[start : start + at_a_time])
            if made[0] != stored:
                return self._cause_of_unsteadiness(plans[0], made[0])
            for name, plan, each in zip(changes, plans[1:], made[1:], strict=False):
                if each != stored and name == "folder":
                    return self._cause_of_place(plan, each)
                if each != stored:
                    what, fix = _DEPENDS_ON[name]
                    return Cause(f"{what} ({plan.said} alone makes it differ)", fix)
        return _CHANCE

    def _cause_of_unsteadiness(self, plan: _Plan, first: Made) -> Cause:
        """Find the cause where the step differs from the stored one in the surroundings of every build."""
        if self._made([replace(plan, said=f"{plan.said}, once more")]) != [first]:
            return _ALWAYS
        if self._made([replace(plan, said="another TMPDIR", temp="another")]) != [first]:
            return _TEMPORARY
        return _SINCE

    def _cause_of_place(self, plan: _Plan, first: Made) -> Cause:
        """Find the cause where the step differs in a copy: do two copies differ from each other, too?"""
        third = replace(plan, said="a third folder", project=self._suspect.copies())
        return _UNRECORDED if self._made([third]) == [first] else _PATH

    def _made(self, plans: Sequence[_Plan]) -> list[Made]:
        """Return the step's result under each plan; all plans run in parallel."""
        with ExitStack() as cleanup:
            waits = [self._start(plan, number, cleanup) for number, plan in enumerate(plans)]
            return [wait() for wait in waits]

    def _start(self, plan: _Plan, number: int, cleanup: ExitStack) -> Callable[[], Made]:
        suspect = self._suspect
        job = suspect.here if plan.project is None else suspect.there
        job = replace(job, log=job.log.with_name(f"{job.log.name}-{number}"))
        self._events.emit(Notice(f"looking for the cause: {job.step.name} with {plan.said}"))
        workspace = open_workspace(plan.project or suspect.original, self._store)
        cleanup.callback(workspace.close)
        options = replace(self._options, surroundings=plan.around)
        executor = make_executor(workspace, self._store / "tmp" / f"{plan.temp}-{number}", options)
        cleanup.callback(executor.close)
        executor.start(job)

        def wait() -> Made:
            ended = executor.wait(_POLL_S)
            while not ended:
                ended = executor.wait(_POLL_S)
            if ended[0].error is not None:
                return str(ended[0].error).replace(f"{workspace.project}/", "")
            return {output: artifact.sha256 for output, artifact in ended[0].outputs.items()}

        return wait


_ALWAYS = Cause(
    "it differs in equal surroundings, too: the time, randomness without a seed, or the addresses "
    "of objects get into it",
    "seed every generator (`np.random.default_rng(0)`), use no clock, sort sets of objects",
)
_TEMPORARY = Cause(
    "it depends on where a step's own folders are (TMPDIR, HOME): a path gets into it",
    "keep the names of temporary files, and os.path.expanduser(), out of the model",
)
_SINCE = Cause(
    "two builds agree with each other now, and not with the stored one: it was made on another "
    "day, on another machine, or from something that has changed without being recorded",
    "see that nothing reads the date or the machine's files; to start anew: `--store FOLDER`",
)
_PATH = Cause(
    "it depends on where the project is: an absolute path gets into it, or what `stat` reports of "
    "a file there (its times, its inode)",
    "keep paths (`__file__`, os.getcwd()) and os.stat() out of what the model computes",
)
_UNRECORDED = Cause(
    "it uses something of the project that the build did not record, such as how large a file is, "
    "or when it was changed (os.stat)",
    "declare the file in the recipe (`files:`) and read it, or make it an argument (`args:`)",
)
_CHANCE = Cause(
    "nothing of it alone makes it differ: chance, or several of them together",
    "run it again with `--times 3`; seed every generator, use no clock, sort sets",
)
_DEPENDS_ON = {
    "hash seed": (
        "it depends on PYTHONHASHSEED: the order of a set, or hash(), gets into it",
        "iterate over `sorted(...)`, and use hashlib instead of hash()",
    ),
    "threads": (
        "it depends on the number of cores: the order of a sum, or of parallel work, gets into it",
        "split work the same way everywhere (no os.sched_getaffinity()), or use one thread",
    ),
    "time zone": (
        "it depends on the time zone: local time gets into it",
        "use no clock; make the date an argument in the recipe (`args:`)",
    ),
    "locale": (
        "it depends on the locale: an encoding, an order or a number's format gets into it",
        "name the encoding (`open(..., encoding='utf-8')`), and sort without the locale",
    ),
    "umask": (
        "it depends on the umask: the mode of a file gets into it",
        "keep what os.stat() reports of files out of what the model computes",
    ),
}
