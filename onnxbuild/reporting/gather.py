"""Gather what the store holds of a recipe's build: how it was built, and from what; nothing is run."""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import cast

from onnxbuild.adapters import git, machine
from onnxbuild.adapters.store.housekeeping import GONE, OTHER, OWN, home_of, read_run, whose_run
from onnxbuild.catalog import CATALOG, forms_of_kinds
from onnxbuild.core.action import NO_FILE, ActionResult
from onnxbuild.core.errors import BuildError, UsageError
from onnxbuild.core.graph import Graph, StepAddress
from onnxbuild.core.ports import Store
from onnxbuild.core.sizes import counted, size_text
from onnxbuild.engine.plan import Planned
from onnxbuild.expansion.reported import Reported, reported_in
from onnxbuild.onnxkit.drawing.numbers import seconds
from onnxbuild.onnxkit.report_page.blocks import (
    Block,
    Cell,
    Cells,
    Paragraph,
    Part,
    ReportSource,
    StepNode,
    Steps,
    StepState,
    Table,
    Text,
)
from onnxbuild.regular_files import read_regular


@dataclass(frozen=True, slots=True)
class Built:
    """A graph, and what the store holds of it.

    Attributes:
        graph: Of all recipes.
        planned: Step -> its prospect: its result, or why it has none.
        store: Where the results are.
        root: Folder of what is kept on this machine.
    """

    graph: Graph
    planned: Mapping[str, Planned]
    store: Store
    root: Path


def sources_of(built: Built, recipe: str, bundles: Collection[str] = ()) -> list[ReportSource]:
    """Return the reports of a recipe's steps, those that are missing with the reason.

    Args:
        built: What the store holds.
        bundles: Show these, and what variants share; empty for all.
    """
    found = reported_in(built.graph, recipe, CATALOG, forms_of_kinds())
    return [_source(built, each) for each in found if not bundles or each.bundle in {"", *bundles}]


def cut_to_bundle(graph: Graph, recipe: str, name: str) -> tuple[Graph, frozenset[str]]:
    """Return what made, judged and measured one bundle, and the names of the bundles to show: it, and what it packages.

    Args:
        graph: That of a request.
        name: The bundle: a variant, or what is made of one.

    Raises:
        UsageError: The graph has nothing of it.
    """
    own = [each for each in graph.deliverables if (each.recipe, each.name) == (recipe, name)]
    names = frozenset(filter(None, (name, *(each.of for each in own))))
    steps = [
        step for step, at in graph.addresses.items() if at.recipe == recipe and at.bundle in names
    ]
    for each in own:
        steps += [ref.step for ref, _ in each.parts]
        steps += [*each.judged_by, *chain.from_iterable(each.measured_by.values())]
    if not steps:
        raise UsageError(f"'{recipe}:{name}' is no longer a part of what was asked for")
    cut = graph.pruned(step for step in steps if graph.resolve(step) in graph.steps)
    kept = tuple(e for e in cut.deliverables if e.recipe == recipe and e.name in names)
    return replace(cut, deliverables=kept), names


def steps_of(graph: Graph, recipe: str) -> dict[str, StepAddress]:
    """Return the steps of a recipe in build order, and those of other components that they need.

    Of a step that it shares with others, the place is that in this recipe.
    """
    places: dict[str, StepAddress] = {}
    for name, at in graph.addresses.items():
        if at.recipe == recipe:
            places.setdefault(graph.resolve(name), at)
    needed = graph.pruned(places).steps
    return {name: places.get(name, graph.addresses[name]) for name in needed}


def missing_steps(built: Built, recipe: str) -> list[str]:
    """Return the steps of a recipe that would run, or might: what the page lacks."""
    names = steps_of(built.graph, recipe)
    return [name for name in names if (each := built.planned[name]).reasons or each.after]


def _source(built: Built, each: Reported) -> ReportSource:
    about = (each.form, each.bundle, each.step, each.target, each.is_gate)
    planned = built.planned[each.report.step]
    result = planned.result
    if result is None or each.report.output not in result.outputs:
        return ReportSource(*about, why=_why(planned, built.graph))
    return ReportSource(
        *about,
        files=built.store.paths(result.outputs[each.report.output]),
        findings=result.findings,
    )


def _why(planned: Planned, graph: Graph) -> str:
    if planned.left_out:
        return planned.left_out
    if planned.blocked:
        return (
            f"not run: {_listed([graph.addresses[name].local for name in planned.blocked])} failed"
        )
    if planned.error is not None:
        return planned.error.what
    return "not built as the recipe is now"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names))


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
        built: What the store holds.
    """
    places = steps_of(built.graph, recipe)
    labels = {name: at.local if at.recipe == recipe else str(at) for name, at in places.items()}
    run = last_run(built.root, project, set(places))
    nodes = tuple(_node(built, name, labels, run) for name in places)
    rows = tuple(_row(built, labels, node) for node in nodes)
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
        project: The project whose runs count; others may share the store.
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


def _node(built: Built, name: str, labels: Mapping[str, str], run: LastRun) -> StepNode:
    planned = built.planned[name]
    state = run.state(name, planned)
    detail = _WORDS["absent"]
    if planned.result is not None:
        detail = f"{_WORDS[state]}, {seconds(planned.result.expense.wall_s)}"
    needs = dict.fromkeys(ref.step for ref in built.graph.steps[name].inputs.values())
    return StepNode(name, labels[name], detail, state, tuple(needs))


def _row(built: Built, labels: Mapping[str, str], node: StepNode) -> Cells:
    result = built.planned[node.name].result
    spent = None if result is None else result.expense
    figures = (
        ("-", "-", "-")
        if spent is None
        else (seconds(spent.wall_s), seconds(spent.cpu_s), size_text(spent.peak_bytes))
    )
    needs = ", ".join(labels[each] for each in node.needs)
    tone = _TONES.get(node.state, "")
    return (
        Cell(node.label, code=True),
        built.graph.steps[node.name].kind,
        Cell(_WORDS[node.state], tone),  # type: ignore[arg-type]
        *figures,
        needs,
    )


_DIGITS = 12
_SHOWN = 40
_NAMED = 5


def commit_of(project: Path, files: Sequence[Path]) -> tuple[str, tuple[str, ...]]:
    """Return the commit that a project is at, and the files that differ from it; both empty outside of git."""
    try:
        found = git.look(project, files)
    except BuildError:
        return "", ()
    return ("", ()) if found.commit is None else (found.commit, found.changed)


def said_of(changed: Sequence[str]) -> str:
    """Return how many files are not as committed; empty for none."""
    return f"{counted(len(changed), 'file')} not as committed" if changed else ""


def made_of(
    built: Built, recipe: str, *, commit: str, changed: Sequence[str], explained: str
) -> Part:
    """Return what a recipe's build was made from.

    Args:
        built: What the store holds.
        commit: The project's, in full; empty if there is none.
        changed: Files that differ from it.
        explained: The recipe in full.
    """
    results = [
        each.result
        for name in steps_of(built.graph, recipe)
        if (each := built.planned[name]).result is not None
    ]
    return Part("contents", tuple(_blocks(results, commit, changed, explained)))


def _blocks(
    results: Sequence[ActionResult], commit: str, changed: Sequence[str], explained: str
) -> Iterator[Block]:
    rows: list[Cells] = [
        ("processor", machine.host_class()["cpu"]),
        ("architecture", machine.host_facts().machine),
        ("cores used", str(machine.usable_cores())),
        ("memory", size_text(machine.memory_bytes())),
        ("Python", machine.python_build().split()[1]),
    ]
    if commit:
        rows.insert(0, ("commit", Cell(commit, code=True)))
    if changed:
        more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
        names = f"{', '.join(changed[:_NAMED])}{more}"
        rows.insert(1, ("differs from it", f"{said_of(changed)}: {names}"))
    yield Table("Commit and this machine", ("what", "value"), tuple(rows))
    files = _observed(results, "sources") | _observed(results, "data")
    files = {
        name: digest
        for name, digest in files.items()
        if not name.startswith("<") and digest != NO_FILE
    }
    if files:
        yield Table(
            "Files of the project that steps read",
            ("file", "sha256"),
            _digests(files),
            folded=True,
        )
    packages = _packages(_observed(results, "distributions"))
    if packages:
        yield Table(
            "Packages that steps loaded", ("package", "version", "content"), packages, folded=True
        )
    if explained:
        yield Text("The recipe as it was understood", explained)
    else:
        yield Paragraph("The recipe can't be written in one file: see `onnxbuild explain`.")


def _observed(results: Sequence[ActionResult], what: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in results:
        values: Mapping[str, str] = getattr(each.observed, what)
        found |= values
    return dict(sorted(found.items()))


def _digests(files: Mapping[str, str]) -> tuple[Cells, ...]:
    rows: tuple[Cells, ...] = tuple(
        (Cell(name, code=True), Cell(digest, code=True)) for name, digest in files.items()
    )
    more = len(rows) - _SHOWN
    return rows if more <= 0 else (*rows[:_SHOWN], (f"and {more} more", ""))


def _packages(found: Mapping[str, str]) -> tuple[Cells, ...]:
    """`numpy 2.4.6 070afa...` as three cells; what is no distribution is left out."""
    rows: list[Cells] = []
    for name, text in found.items():
        parts = text.split()
        if not name.startswith("<") and len(parts) == 3:  # noqa: PLR2004 - name, version, digest
            rows.append((name, parts[1], Cell(parts[2][:_DIGITS], code=True)))
    return tuple(rows)
