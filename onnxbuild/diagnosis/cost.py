"""Measure the cost of a remedy: the variant before it and after it, and fp32, in one benchmark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onnxbuild.building.api import Request, build, graph_of
from onnxbuild.building.wiring import RunOptions
from onnxbuild.catalog import all_features
from onnxbuild.core.graph import Graph
from onnxbuild.core.ports import EventSink
from onnxbuild.core.recipe import Recipe
from onnxbuild.core.step import REPORT_FILE
from onnxbuild.diagnosis.artifact_folders import artifact_of, artifacts_shown, size_bytes
from onnxbuild.onnxkit.search.trial_latencies import MeasuredTrials
from onnxbuild.onnxkit.timing.ratios import Ratio
from onnxbuild.recipe.parts.parts import plain_mode

_FP32, _TRIED, _MENDED = "fp32", "tried", "mended"


@dataclass(frozen=True, slots=True)
class RemedyCost:
    """Sizes in bytes, and speeds as ratios of times: above 1 where the mended one is faster.

    Attributes:
        fp32_bytes: Of the model that is quantized.
        tried_bytes: Of the variant as it was.
        mended_bytes: Of the variant with the remedy.
        over_fp32: Speed of the mended variant relative to fp32; None where it was not measured.
        over_tried: Compared with the variant before the change.
    """

    fp32_bytes: int
    tried_bytes: int
    mended_bytes: int
    over_fp32: Ratio | None
    over_tried: Ratio | None


def measure_cost(
    request: Request,
    recipe: Recipe,
    variants: tuple[str, str],
    options: RunOptions,
    events: Sequence[EventSink] = (),
) -> RemedyCost | None:
    """Build the recipe's benchmark of three variants alone; what is built already is not built again.

    Args:
        request: The recipe.
        recipe: It, parsed.
        variants: As tried and as mended, each as JSON below `quantization: {NAME: ...}`.
        options: How to use the machine.
        events: Receives the events of the build.

    Returns: None where one can't be built.
    """
    quantization = {
        _FP32: plain_mode().name,
        _TRIED: json.loads(variants[0]),
        _MENDED: json.loads(variants[1]),
    }
    kept = {
        key: value
        for key, value in (request.settings or {}).items()
        if key.partition(".")[0] != "quantization"
    }
    alone = (each.side_by_side.alone for each in all_features() if each.side_by_side)
    settings = {
        **kept,
        "quantization": json.dumps(quantization),
        **{key: value for each in alone for key, value in each.items()},
    }
    step = _measuring_step(graph_of(replace(request, settings=settings, only=())), recipe)
    asked = replace(request, settings=settings, only=(step,))
    result = build(asked, options, events, lay=False)
    if step not in result.graph.steps:
        return None
    inputs = result.graph.steps[step].inputs
    sizes = {}
    for name in (_FP32, _TRIED, _MENDED):
        made = artifact_of(result, inputs[f"model/{name}"].step)
        if made is None:
            return None
        sizes[name] = size_bytes(made)
    with artifacts_shown(asked, result, [step]) as folders:
        ratios = _ratios(folders.get(step))
    return RemedyCost(sizes[_FP32], sizes[_TRIED], sizes[_MENDED], *ratios)


def _measuring_step(graph: Graph, recipe: Recipe) -> str:
    """Return the name of the step that measures the variants side by side on the first target."""
    kinds = {each.side_by_side.kind for each in all_features() if each.side_by_side}
    (mended,) = (
        each for each in graph.deliverables if (each.recipe, each.name) == (recipe.name, _MENDED)
    )
    steps = mended.measured_by[recipe.targets[0].name]
    return next(name for name in steps if graph.steps[graph.resolve(name)].kind in kinds)


def _ratios(folder: Path | None) -> tuple[Ratio | None, Ratio | None]:
    if folder is None:
        return None, None
    report: dict[str, Any] = json.loads((folder / REPORT_FILE).read_text("utf-8"))
    points = [point["point"] for point in report["points"]]
    if not points:
        return None, None
    measured = MeasuredTrials(folder, points, [_FP32, _TRIED, _MENDED])
    return measured.ratio(_FP32, _MENDED), measured.ratio(_TRIED, _MENDED)
