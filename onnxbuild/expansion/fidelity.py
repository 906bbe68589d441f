"""Steps over the `fidelity` data: the baseline's vectors, how near a model is, what is sensitive."""

from __future__ import annotations

from typing import Any

from onnxbuild.core.graph import OutputRef, StepAddress
from onnxbuild.core.recipe import Recipe, Variant
from onnxbuild.core.target import Target
from onnxbuild.expansion.generation import expected_tokens_of, has_prompts
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.sessions import settings_of, target_inputs
from onnxbuild.onnxkit.quantize.blockwise import BlockGrid
from onnxbuild.onnxkit.sensitivity.static_rounding import StaticScheme
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
        weights: How a variant rounds that keeps few bits of weights alone; a decoder with prompts is measured on
            PyTorch's continuations of these.
    """
    recipe = scope.recipe
    options = recipe.section("sensitivity", sensitivity.SensitivityOptions)
    by_metric = options.rank_by == "metric"
    by_text = weights is not None and has_prompts(recipe)
    step = scope.step(
        address,
        sensitivity.KIND,
        sensitivity.SensitivityParams(
            data=None
            if by_text
            else recipe.entrypoints["evaluation" if by_metric else "fidelity"],
            project=None if by_text else recipe.entrypoints.get("projection"),
            inputs=recipe.inputs,
            axes=recipe.axes,
            samples=options.samples,
            runs=options.runs,
            metric=recipe.entrypoints["metric"] if by_metric and not by_text else None,
            static=static,
            weights=weights,
            logits=recipe.outputs[0] if by_text else "",
        ),
        {
            "model": model,
            **({"calibration": calibration} if calibration else {}),
            **({"tokens": expected_tokens_of(scope)} if by_text else {}),
        },
        section="evaluate" if by_metric else SECTION,
    )
    return OutputRef(step, "sensitivity")


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
