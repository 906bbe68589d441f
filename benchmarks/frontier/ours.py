"""Our ways of storing a model, built by onnxbuild in a store of the benchmark's own."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks.frontier.subjects import Subject
from onnxbuild.building.api import Request, build, graph_of
from onnxbuild.building.wiring import RunOptions, open_workspace
from onnxbuild.core.graph import Graph, OutputRef
from onnxbuild.core.step import MODEL_FILE

EXPORTED = "exported"
"""Name of the model that the others are made of."""


def build_ours(subject: Subject, store: Path) -> dict[str, Path]:
    """Way -> its model's file; EXPORTED's, too. What the store holds is not built again.

    Gates are left out: a way that loses too much is reported, not refused.

    Raises:
        SystemExit: Something can't be built.
    """
    found: dict[str, Path] = {}
    for settings in dict.fromkeys(way.settings for way in subject.ways.values()):
        ways = {name: way for name, way in subject.ways.items() if way.settings == settings}
        request = Request((subject.recipe,), settings=dict(settings), store=str(store))
        graph = graph_of(request)
        recipe = graph.deliverables[0].recipe
        wanted = {name: _model(graph, f"{recipe}:{way.variant}") for name, way in ways.items()}
        wanted[EXPORTED] = OutputRef(f"{recipe}:export", "model")
        found |= _built(request, wanted)
    return found


def _model(graph: Graph, variant: str) -> OutputRef:
    return graph.steps[graph.resolve(f"{variant}/validate")].inputs["model"]


def _built(request: Request, wanted: dict[str, OutputRef]) -> dict[str, Path]:
    only = tuple(dict.fromkeys(each.step for each in wanted.values()))
    request = Request(request.recipes, only, request.settings, request.store)
    result = build(request, RunOptions())
    if result.exit_code:
        sys.exit("\n".join(str(failure.error) for failure in result.report.failures))
    workspace = open_workspace(request.project, result.store, make=False)
    try:
        found = {}
        for name, output in wanted.items():
            step = result.report.results[result.graph.resolve(output.step)]
            files = workspace.store.paths(step.outputs[output.output])
            found[name] = files[MODEL_FILE].absolute()
        _tell(request, result.report.built, result.report.cached)
        return found
    finally:
        workspace.close()


def _tell(request: Request, built: Iterable[str], cached: Iterable[str]) -> None:
    counts = f"{len(list(built))} steps built, {len(list(cached))} cached"
    print(f"{request.recipes[0].stem}: {counts}", file=sys.stderr)
