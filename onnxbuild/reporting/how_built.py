"""How a recipe was built: its steps with their times, and which of them the last run found in the store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from onnxbuild.core.graph import Graph
from onnxbuild.engine.plan import Planned
from onnxbuild.onnxkit.report_page.blocks import Cell, Cells, Paragraph, StepNode, Steps
from onnxbuild.onnxkit.report_page.model import Part
from onnxbuild.onnxkit.report_page.words import counted, seconds, size
from onnxbuild.reporting.gather import Built

_EVENTS = "events.jsonl"
_STATES = {"step_cached": "cached", "step_finished": "run", "step_failed": "failed"}
_TONES: Mapping[str, str] = {"run": "", "cached": "good", "failed": "bad", "absent": "warn"}
_WORDS = {"run": "built", "cached": "from the store", "failed": "failed", "absent": "not built"}


def how_built(built: Built, recipe: str) -> Part:
    """Return the graph of a recipe's steps, each with its time and its state in the last run."""
    graph = built.graph
    names = [name for name in graph.steps if graph.addresses[name].recipe == recipe]
    run, states = last_run(built.store.root, set(names))
    nodes = tuple(_node(graph, name, built.planned[name], states) for name in names)
    rows = tuple(_row(graph, built.planned[node.name], node) for node in nodes)
    results = [each.result for name in names if (each := built.planned[name]).result is not None]
    total_s = sum(each.expense.wall_s for each in results if each is not None)
    reused = sum(node.state == "cached" for node in nodes)
    said = f"{counted(len(nodes), 'step')}; building all of them took {seconds(total_s)} of step time."
    if run:
        said += f" The last run that touched them, {run}, took {reused} of them from the store."
    heads = ("step", "kind", "last run", ">time", ">processor time", ">peak memory", "needs")
    return Part("built", (Paragraph(said), Steps(f"Steps of {recipe}", nodes, heads, rows)))


def last_run(root: Path, names: set[str]) -> tuple[str, dict[str, str]]:
    """Return the newest run that says something of these steps, and step -> its state in it.

    Args:
        root: The store's folder.
        names: The steps.

    Returns: The run's time, `2026-11-24 00:11 UTC`; empty where no run's events are kept.
    """
    folder = root / "runs"
    runs = (
        sorted((each.name for each in folder.iterdir()), reverse=True) if folder.is_dir() else []
    )
    for run in runs:
        found = {step: state for step, state in _events(folder / run / _EVENTS) if step in names}
        if found:
            return shown_run(run), found
    return "", {}


def shown_run(run: str) -> str:
    """Return a run's time as people read it, from its id."""
    day, _, time = run.partition("T")
    return f"{day[:4]}-{day[4:6]}-{day[6:8]} {time[:2]}:{time[2:4]} UTC"


def _events(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (step, state) of a run's events."""
    try:
        lines = path.read_bytes().splitlines()
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


def _node(graph: Graph, name: str, planned: Planned, states: Mapping[str, str]) -> StepNode:
    result = planned.result
    state = states.get(name, "cached")
    if result is None:
        state = "absent"
    elif result.findings:
        state = "failed"
    detail = (
        "not built" if result is None else f"{_WORDS[state]}, {seconds(result.expense.wall_s)}"
    )
    needs = dict.fromkeys(ref.step for ref in graph.steps[name].inputs.values())
    label = graph.addresses[name].local
    return StepNode(name, label, detail, state, tuple(needs))  # type: ignore[arg-type]


def _row(graph: Graph, planned: Planned, node: StepNode) -> Cells:
    spent = None if planned.result is None else planned.result.expense
    figures = (
        ("-", "-", "-")
        if spent is None
        else (seconds(spent.wall_s), seconds(spent.cpu_s), size(spent.peak_bytes))
    )
    needs = ", ".join(graph.addresses[each].local for each in node.needs)
    tone = _TONES[node.state]
    return (
        Cell(node.label, code=True),
        graph.steps[node.name].kind,
        Cell(_WORDS[node.state], tone),  # type: ignore[arg-type]
        *figures,
        needs,
    )
