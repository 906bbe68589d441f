"""Steps over the `fidelity` data: the baseline's vectors, how near a model is; and what is sensitive, by these or other data."""

from typing import Any, Literal

from onnxbuild.core.graph import OutputRef, StepAddress
from onnxbuild.core.recipe import Recipe, Variant
from onnxbuild.core.target import Target
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.generation import SECTION as GENERATE
from onnxbuild.expansion.generation import expected_tokens_of, has_prompts
from onnxbuild.expansion.pipelines import (
    has_measure,
    metric_of_whole,
    run_of_whole,
    will_have_measure,
)
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.sessions import settings_of, target_inputs
from onnxbuild.onnxkit.quantize.blockwise import BlockGrid
from onnxbuild.onnxkit.sensitivity.static_rounding import StaticScheme
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.steps import baseline, fidelity, sensitivity

SECTION = "fidelity"


def add_fidelity(
    scope: Scope,
    address: StepAddress,
    variant: Variant,
    *,
    model: OutputRef,
    fp32: OutputRef,
    target: Target,
    baseline_at: StepAddress,
    gates: bool = True,
) -> OutputRef:
    """Add the step that measures how near a variant is to the fp32 model on the user's data.

    Args:
        scope: The recipe, which names the data.
        variant: Whose session it is run in.
        fp32: What it is compared with.
        target: Where the model runs.
        baseline_at: Address of the step that runs the fp32 model.
        gates: A part of an output that is lost fails the run; a search judges its trials itself.
    """
    recipe = scope.recipe
    step = scope.step(
        address,
        fidelity.KIND,
        fidelity.FidelityParams(
            **_data(recipe),
            samples=_samples(recipe),
            target=target,
            session=settings_of(recipe, variant).judged_anywhere(),
            variant=variant.name if gates else "",
        ),
        {
            "model": model,
            "baseline": _baseline(scope, baseline_at, fp32),
            **target_inputs(scope, target),
        },
        section=SECTION,
    )
    return OutputRef(step, "report")


def add_sensitivity(
    scope: Scope,
    model: OutputRef,
    address: StepAddress,
    *,
    static: StaticScheme | None = None,
    calibration: OutputRef | None = None,
    weights: BlockGrid | None = None,
) -> OutputRef:
    """Add the step that measures what few bits in each node do.

    Args:
        scope: The recipe, which names the data, or the metric.
        model: In fp32.
        static: How a static variant rounds; None rounds as dynamic ones do.
        weights: How a variant rounds that keeps few bits of weights alone.
    """
    recipe = scope.recipe
    options = recipe.section("sensitivity", sensitivity.SensitivityOptions)
    measure = _measure_of(recipe, of_weights=weights is not None)
    data = {"fidelity": SECTION, "metric": "evaluation"}.get(measure)
    whole, others = run_of_whole(scope, SessionSettings()) if measure == "whole" else (None, {})
    metrics = {"metric": recipe.entrypoints.get("metric"), "whole": metric_of_whole(recipe)}
    step = scope.step(
        address,
        sensitivity.KIND,
        sensitivity.SensitivityParams(
            data=None if data is None else recipe.entrypoints[data],
            project=None if data is None else recipe.entrypoints.get("projection"),
            inputs=recipe.inputs,
            axes=recipe.axes,
            samples=options.samples,
            runs=options.runs,
            metric=metrics.get(measure),
            static=static,
            weights=weights,
            logits=recipe.outputs[0] if measure == "text" else "",
            whole=whole,
            component=recipe.component if whole else "",
        ),
        {
            "model": model,
            **({"calibration": calibration} if calibration else {}),
            **({"tokens": expected_tokens_of(scope)} if measure == "text" else {}),
            **others,
        },
        section="evaluate" if options.rank_by == "metric" else SECTION,
    )
    return OutputRef(step, "sensitivity")


_Measure = Literal["text", "whole", "metric", "fidelity"]
"""Measure that ranks nodes: KL divergence on PyTorch's continuations of prompts, the pipeline's measure, the metric of `evaluate`'s
data, or distance on those of `fidelity`."""


def _measure_of(recipe: Recipe, *, of_weights: bool) -> _Measure:
    has_data = SECTION in recipe.entrypoints
    if has_prompts(recipe) and (of_weights or not has_data):
        return "text"
    by_metric = recipe.section("sensitivity", sensitivity.SensitivityOptions).rank_by == "metric"
    if by_metric and "evaluation" in recipe.entrypoints:
        return "metric"
    return "whole" if has_measure(recipe) and (by_metric or not has_data) else "fidelity"


def can_rank(recipe: Recipe) -> bool:
    """Return whether a recipe says by what its nodes are ranked."""
    return _measure_of(recipe, of_weights=False) != "fidelity" or SECTION in recipe.entrypoints


def will_rank(parts: Parts) -> bool:
    """Return the same of a recipe that is being read."""
    in_other_ways = parts.node(GENERATE) is not None or will_have_measure(parts)
    return in_other_ways or not parts.lacks(SECTION, "data")


def _baseline(scope: Scope, address: StepAddress, fp32: OutputRef) -> OutputRef:
    recipe = scope.recipe
    step = scope.step(
        address,
        baseline.KIND,
        baseline.BaselineParams(**_data(recipe), samples=_samples(recipe)),
        {"model": fp32},
        section=SECTION,
    )
    return OutputRef(step, "vectors")


def _samples(recipe: Recipe) -> int:
    return recipe.section(SECTION, fidelity.FidelityOptions).samples


def _data(recipe: Recipe) -> dict[str, Any]:
    return {
        "data": recipe.entrypoints["fidelity"],
        "project": recipe.entrypoints.get("projection"),
        "inputs": recipe.inputs,
    }
