"""Show how a recipe was built: its steps with their times, and which of them the last run found in the store."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from onnxbuild.adapters.store.housekeeping import GONE, OTHER, OWN, home_of, read_run, whose_run
from onnxbuild.core.address import StepAddress
from onnxbuild.engine.plan import Planned
from onnxbuild.onnxkit.report_page.blocks import (
    Cell,
    Cells,
    Paragraph,
    StepNode,
    Steps,
    StepState,
)
from onnxbuild.onnxkit.report_page.model import Part
from onnxbuild.onnxkit.report_page.words import counted, seconds, size
from onnxbuild.regular_files import read_regular
from onnxbuild.reporting.gather import Built, steps_of

_EVENTS = "events.jsonl"
_STATES = {"step_cached": "cached", "step_finished": "run", "step_failed": "failed"}
_TONES: Mapping[str, str] = {"run": "", "cached": "good", "failed": "bad", "absent": "warn"}
_WORDS = {
    "run": "built", "cached": "from the store", "failed": "failed", "absent": "not built",
    "shared": "in that run, for another recipe", "untouched": "not in that run",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LastRun:
    """The newest run that says something of some steps.

    Attributes:
        at: Its time, `2026-11-24 00:11 UTC`; empty where no run's events are kept.
        states: Step -> what became of it, of the steps that the run names.
        keys: Those of all results that it made or found.
    """

    at: str = ""
    states: Mapping[str, str] = field(default_factory=dict)
    keys: frozenset[str] = frozenset()

    def state(self, step: str, planned: Planned) -> StepState:
        """Return what became of a step: a failure of what is built now counts most.

        Args:
            step: Its name.
            planned: What the store holds of it.
        """
        if planned.result is None:
            return "absent"
        if planned.result.findings:
            return "failed"
        if step in self.states:
            return cast("StepState", self.states[step])
        return "shared" if planned.result.key in self.keys else "untouched"


def how_built(project: Path, built: Built, recipe: str) -> Part:
    """Return the graph of a recipe's steps, each with its time and its state in the last run.

    Args:
        project: The project's root.
        built: What the store holds.
        recipe: The recipe's name.
    """
    places = steps_of(built.graph, recipe)
    run = last_run(built.root, project, set(places))
    nodes = tuple(_node(built, name, places, run) for name in places)
    rows = tuple(_row(built, places, node) for node in nodes)
    results = [each.result for name in places if (each := built.planned[name]).result is not None]
    total_s = sum(each.expense.wall_s for each in results if each is not None)
    said = f"{counted(len(nodes), 'step')}; building all of them took {seconds(total_s)} of step time."
    if run.at:
        said += f" The last run of any of them, {run.at}, {_counted_states(nodes)}."
    heads = ("step", "kind", "last run", ">time", ">processor time", ">peak memory", "needs")
    return Part("built", (Paragraph(said), Steps(f"Steps of {recipe}", nodes, heads, rows)))


def _counted_states(nodes: Sequence[StepNode]) -> str:
    """Return how many steps a run built, found and left alone: `built 2 and took 5 from the store; 3 were not in it`."""
    of = Counter(each.state for each in nodes)
    done = [f"built {of['run']}"] * bool(of["run"])
    done += [f"took {of['cached']} from the store"]
    untouched = of["untouched"]
    verb = "was" if untouched == 1 else "were"
    rest = f"; {untouched} {verb} not in it" if untouched else ""
    return f"{' and '.join(done)}{rest}"


def last_run(root: Path, project: Path, names: set[str]) -> LastRun:
    """Return the newest run that says something of these steps.

    Args:
        root: The store's folder.
        project: The project whose runs count; others may share the store.
        names: The steps.
    """
    home = home_of(root, project)
    of_gone: LastRun | None = None
    folder = root / "runs"
    runs = (
        sorted((each.name for each in folder.iterdir()), reverse=True) if folder.is_dir() else []
    )
    for run in runs:
        found = {step: state for step, state in _events(folder / run / _EVENTS) if step in names}
        whose = whose_run(root, run, home) if found else OTHER
        if whose == OWN or (whose == GONE and of_gone is None):
            note = read_run(folder / run)
            keys = frozenset[str]() if note is None else frozenset(note.keys)
            last = LastRun(shown_run(run), found, keys)
            if whose == OWN:
                return last
            of_gone = last
    return of_gone or LastRun()


def shown_run(run: str) -> str:
    """Return a run's time as people read it, from its id."""
    day, _, time = run.partition("T")
    return f"{day[:4]}-{day[4:6]}-{day[6:8]} {time[:2]}:{time[2:4]} UTC"


def _events(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (step, state) of a run's events."""
    try:
        lines = read_regular(path).splitlines()
    except OSError:
        return
    for line in lines:
        try:
            event = json.loads(line)
            state = _STATES.get(event["type"])
        except (ValueError, KeyError, TypeError):
            continue
        if state is not None:
            yield str(event.get("step")), state


def _node(built: Built, name: str, places: Mapping[str, StepAddress], run: LastRun) -> StepNode:
    planned = built.planned[name]
    state = run.state(name, planned)
    detail = _WORDS["absent"]
    if planned.result is not None:
        detail = f"{_WORDS[state]}, {seconds(planned.result.expense.wall_s)}"
    needs = dict.fromkeys(ref.step for ref in built.graph.steps[name].inputs.values())
    return StepNode(name, places[name].local, detail, state, tuple(needs))


def _row(built: Built, places: Mapping[str, StepAddress], node: StepNode) -> Cells:
    result = built.planned[node.name].result
    spent = None if result is None else result.expense
    figures = (
        ("-", "-", "-")
        if spent is None
        else (seconds(spent.wall_s), seconds(spent.cpu_s), size(spent.peak_bytes))
    )
    needs = ", ".join(places[each].local for each in node.needs)
    tone = _TONES.get(node.state, "")
    return (
        Cell(node.label, code=True),
        built.graph.steps[node.name].kind,
        Cell(_WORDS[node.state], tone),  # type: ignore[arg-type]
        *figures,
        needs,
    )
