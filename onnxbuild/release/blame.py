"""Why a step gives other bytes: it is run again, one thing of its surroundings changed at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from onnxbuild.adapters.child_environment import ORDINARY, Surroundings
from onnxbuild.catalog import CATALOG
from onnxbuild.core.event import Notice
from onnxbuild.core.ports import EventSink, Job
from onnxbuild.release.variations import described, one_by_one
from onnxbuild.wiring import RunOptions, make_executor, open_workspace

_POLL_S = 0.2
_LONGEST_S = 3600.0  # for all trials together; more is for the user to ask for
_TRIALS_MAX = 7

Made = Mapping[str, str] | str  # output -> sha256 of the artifact; or why the step failed


@dataclass(frozen=True, slots=True)
class Cause:
    """What a step's output depends on.

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


def find_cause(
    suspect: Suspect, around: Surroundings, store: Path, options: RunOptions, events: EventSink
) -> Cause | None:
    """What makes the step differ, found by running it alone.

    Args:
        suspect: The step.
        around: The surroundings that it differed in.
        store: A store that has the step's inputs; the trials' outputs go there, too.
        options: How to use the machine.
        events: Told of what is tried.

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

    def cause(self, around: Surroundings) -> Cause:
        stored = self._suspect.stored
        again = self._made("ordinary surroundings", ORDINARY)
        if again != stored:
            return self._cause_of_unsteadiness(again)
        for name, one in one_by_one(around).items():
            if one == ORDINARY:
                continue
            change = described(one)[name]
            if name == "folder":
                copy = self._suspect.copies()
                made = self._made(change, one, project=copy)
                if made != stored:
                    return self._cause_of_place(made, one)
            elif self._made(change, one) != stored:
                what, fix = _DEPENDS_ON[name]
                return Cause(f"{what} ({change} alone makes it differ)", fix)
        return _CHANCE

    def _cause_of_unsteadiness(self, again: Made) -> Cause:
        """It differs from the stored one in the surroundings of every build."""
        if self._made("ordinary surroundings, once more", ORDINARY) != again:
            return _ALWAYS
        if self._made("another TMPDIR", ORDINARY, temp="another") != again:
            return _TEMPORARY
        return _SINCE

    def _cause_of_place(self, made: Made, around: Surroundings) -> Cause:
        """It differs in a copy: do two copies differ from each other, too?"""
        other = self._suspect.copies()
        same = self._made("a third folder", around, project=other) == made
        return _UNRECORDED if same else _PATH

    def _made(
        self,
        said: str,
        around: Surroundings,
        *,
        project: Path | None = None,
        temp: str = "trial",
    ) -> Made:
        """What the step makes in some surroundings; here, or in a copy of the project."""
        suspect = self._suspect
        job = suspect.here if project is None else suspect.there
        self._events.emit(Notice(f"looking for the cause: {job.step.name} again with {said}"))
        workspace = open_workspace(project or suspect.original, self._store)
        options = replace(self._options, surroundings=around)
        executor = make_executor(workspace, self._store / "tmp" / temp, options)
        try:
            executor.start(job)
            ended = executor.wait(_POLL_S)
            while not ended:
                ended = executor.wait(_POLL_S)
            done = ended[0]
            if done.error is not None:
                return str(done.error).replace(f"{workspace.project}/", "")
            kinds = CATALOG[job.step.kind].outputs
            return {
                output: workspace.store.ingest(folder, kinds[output]).sha256
                for output, folder in done.outputs.items()
            }
        finally:
            executor.close()
            workspace.close()


_ALWAYS = Cause(
    "it differs in equal surroundings, too: the time, randomness without a seed, or the addresses "
    "of objects get into it",
    "seed every generator (`np.random.default_rng(0)`), use no clock, sort sets of objects",
)
_TEMPORARY = Cause(
    "it depends on where temporary files lie (TMPDIR): a path gets into it",
    "keep the names of temporary files out of the model",
)
_SINCE = Cause(
    "two builds agree with each other now, and not with the stored one: it was made on another "
    "day, on another machine, or from something that has changed without being recorded",
    "see that nothing reads the date or the machine's files; to start anew: `--store FOLDER`",
)
_PATH = Cause(
    "it depends on where the project lies: an absolute path gets into it",
    "keep paths (`__file__`, os.getcwd()) out of what the model computes",
)
_UNRECORDED = Cause(
    "it uses something of the project that the build did not record, such as whether a file is "
    "there (os.path.exists)",
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
}
