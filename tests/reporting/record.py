"""Record the reports of real builds, small, for test_real_recipes.py: `python -m tests.reporting.record STORE RECIPE [KEY=VALUE]...`.

A recorded file holds what the steps of a build wrote: JSON as it is, and of each series of measured times at most 60, evenly
chosen. Build first: `onnxbuild run RECIPE --store STORE --set KEY=VALUE`.
"""

import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from onnxbuild.building.api import plan
from onnxbuild.building.request import Request, graph_of, load
from onnxbuild.building.wiring import open_workspace
from onnxbuild.core.step import Finding
from onnxbuild.expansion.reported import judged_bundles
from onnxbuild.onnxkit.report_page.blocks import RecipeReport, ReportSource
from onnxbuild.onnxkit.report_page.compose import compose
from onnxbuild.reporting.gather import Built, sources_of

RECORDED = Path(__file__).parent / "recorded"
_SAMPLES = 60
_SHOWN_ELSEWHERE = {"validation.json"}
"""In a bundle: the report of its gate, which is recorded for itself."""


def record(path: Path, store: str, settings: dict[str, str]) -> dict[str, Any]:
    """Return what is built of a recipe, with these values of `--set`, as JSON."""
    request = Request((path,), store=store, settings=settings)
    loaded = load(request)
    (recipe,) = loaded.recipes
    graph = graph_of(request, loaded)
    planned = {each.step: each for each in plan(request, graph)}
    with closing(open_workspace(request.project, request.store_root, make=False)) as workspace:
        built = Built(graph, planned, workspace.store, workspace.root)
        return {
            "name": recipe.name,
            "description": recipe.description,
            "bundles": list(judged_bundles(graph, recipe.name)),
            "sources": [_recorded(each) for each in sources_of(built, recipe.name)],
        }


def recorded(name: str, folder: Path) -> RecipeReport:
    """Return the report of a recorded build.

    Args:
        name: The recipe's file, without its ending.
        folder: Where the steps' files are written again.
    """
    found = json.loads((RECORDED / f"{name}.json").read_text())
    sources = [_written(each, folder / f"{n}") for n, each in enumerate(found["sources"])]
    return compose(found["name"], found["description"], found["bundles"], sources)


def _recorded(source: ReportSource) -> dict[str, Any]:
    files: dict[str, Any] = {}
    for name, path in source.files.items():
        if name in _SHOWN_ELSEWHERE:
            continue
        if name.endswith(".json"):
            files[name] = json.loads(path.read_text())
        elif name.endswith(".npz"):
            with np.load(path) as arrays:
                files[name] = {key: _few(arrays[key]) for key in arrays.files}
    findings = [[each.what, each.where, each.fix] for each in source.findings]
    return {
        "form": source.form, "bundle": source.bundle, "step": source.step, "target": source.target,
        "is_gate": source.is_gate, "files": files, "findings": findings, "why": source.why,
    }  # fmt: skip


def _few(samples: np.ndarray) -> list[int]:
    at = np.linspace(0, len(samples) - 1, min(len(samples), _SAMPLES)).astype(int)
    return [int(each) for each in samples[at]]


def _written(each: dict[str, Any], folder: Path) -> ReportSource:
    folder.mkdir(parents=True)
    for name, content in each["files"].items():
        if name.endswith(".json"):
            (folder / name).write_text(json.dumps(content))
        else:
            np.savez(folder / name, **{k: np.array(v, np.int64) for k, v in content.items()})
    files = {name: folder / name for name in each["files"]}
    findings = tuple(Finding(*found) for found in each["findings"])
    about = (each["form"], each["bundle"], each["step"], each["target"], each["is_gate"])
    return ReportSource(*about, files=files, findings=findings, why=each["why"])


if __name__ == "__main__":
    _, store, recipe, *settings = sys.argv
    found = record(Path(recipe), store, dict(each.split("=", 1) for each in settings))
    content = json.dumps(found, separators=(",", ":"))
    (RECORDED / f"{Path(recipe).stem}.json").write_text(f"{content}\n")
