"""`auto`: the fastest of several ways that keeps to a goal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import DUMMY_DATA, Recipe, Variant
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.addresses import of_variant
from onnxbuild.expansion.benchmarks import benchmark_of_trials
from onnxbuild.expansion.diagnosis_hints import DiagnosisHints
from onnxbuild.expansion.evaluation import add_evaluation, without_scores
from onnxbuild.expansion.feature import (
    Choice,
    ExtraReport,
    Mode,
    Subject,
    Trial,
    TrialFigure,
    WrittenVariant,
)
from onnxbuild.expansion.fidelity import add_fidelity
from onnxbuild.expansion.fused import fused_for, own_address
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.sessions import VariantSession, settings_of
from onnxbuild.expansion.variants import flow, written_variant
from onnxbuild.mode_steps.eight_bit_faults import ADD_DATA
from onnxbuild.onnxkit.accuracy.tolerances import DEFAULT_TOLERANCES
from onnxbuild.steps import choose
from onnxbuild.steps.calibrate import CalibrationOptions
from onnxbuild.steps.choose import AutoOptions, Tried

NAME = "auto"

_TAKEN = ("model", "fidelity", "evaluation")
"""Outputs of each trial that the step that chooses takes."""

_KEPT_SHARES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
"""Shares of the quantizable nodes that trials keep in fp32, the most sensitive first."""

_BALANCED_KEPT_SHARES = (0.05, 0.1, 0.2, 0.35)

_OTHER_METHODS = ("mse", "percentile")
"""Calibration methods tried after the recipe's own. Entropy clips what transformers need, and did no better on
convolutions."""

_STATIC_KEPT_SHARES = (0.1, 0.3)

_BALANCED: dict[str, Any] = {"balance": True, "rounding": "gptq"}
"""On MiniLM as fast as plain 8 bits within 3 %, with a seventh of the error."""


def _model(scope: Scope, variant: Variant) -> OutputRef:
    """The chosen model."""
    recipe = scope.recipe
    options = variant.options_as(AutoOptions)
    choice = scope.choices.get(f"{recipe.name}:{variant.name}", "")
    trials = scope.trials(variant)
    if choice:
        trials = {trial: each for trial, each in trials.items() if trial == choice}
    fp32 = fused_for(scope, variant)
    inputs: dict[str, OutputRef] = {}
    models: dict[str, OutputRef] = {}
    for trial, each in trials.items():
        models[trial] = scope.model(each)
        inputs[_of_trial("model", trial)] = models[trial]
        if "fidelity" in recipe.entrypoints:
            inputs[_of_trial("fidelity", trial)] = add_fidelity(
                scope,
                of_variant(recipe, each, "fidelity"),
                each,
                model=models[trial],
                fp32=fp32,
                target=recipe.targets[0],
                baseline_at=own_address(recipe, variant, "baseline"),
                gates=False,
            )
        scored = None
        if options.goal.max_drop is not None:
            scored = add_evaluation(scope, each, models[trial], recipe.targets[0], gates=False)
        if scored is not None:
            inputs[_of_trial("evaluation", trial)] = scored
    if not choice:
        inputs["benchmark"] = benchmark_of_trials(
            scope,
            of_variant(recipe, variant, "trials"),
            {choose.UNCHANGED: fp32, **models},
            VariantSession(settings_of(recipe, variant)),
        )
    step = scope.step(
        of_variant(recipe, variant, "choose"),
        choose.KIND,
        choose.ChooseParams(
            variant=variant.name,
            goal=options.goal,
            margin=options.margin,
            trials=tuple(
                choose.MeasuredTrial(trial, flow(written_variant(recipe, each)))
                for trial, each in trials.items()
            ),
            choice=choice,
        ),
        inputs,
        at=variant.location,
        optional_inputs=() if choice else tuple(each for each in inputs if each != "benchmark"),
    )
    return OutputRef(step, "model")


def _of_trial(what: str, trial: str) -> str:
    """Name of an input of the step that chooses."""
    return f"{what}/{trial}"


def _inputs_of_trials(params: choose.ChooseParams) -> Mapping[str, tuple[str, ...]]:
    """Trial -> the inputs that `_model` gives for it, or may."""
    return {
        each.name: tuple(_of_trial(what, each.name) for what in _TAKEN) for each in params.trials
    }


def _trials(recipe: Recipe, variant: Variant) -> Iterator[Trial]:
    """The most promising first: a smaller budget cuts off the last."""
    options = variant.options_as(AutoOptions)
    include = options.include or (
        ("dynamic", "static") if "calibration" in recipe.entrypoints else ("dynamic",)
    )
    calibration = recipe.entrypoints.get("calibration")
    ladder = _ladder(
        keeps="fidelity" in recipe.entrypoints,
        balances=calibration is not None and calibration.target != DUMMY_DATA,
    )
    method = recipe.section("calibration", CalibrationOptions).method
    left = options.trials
    for each in ladder:
        known = each.changes.get("calibration_method") == method
        if each.mode in include and not known and left:
            left -= 1
            yield each


def _tries(recipe: Recipe) -> Iterator[str]:
    """Yield the modes that `include` can name."""
    yield from (
        each for each in get_args(Tried) if each != "static" or "calibration" in recipe.entrypoints
    )


def _ladder(*, keeps: bool, balances: bool) -> Iterator[Trial]:
    """Yield all ways, without regard to what the variant includes."""
    yield Trial("int8-dynamic", "dynamic", {})
    if balances:
        yield Trial("int8-balanced", "dynamic", _BALANCED)
    yield Trial("int8-static", "static", {})
    yield Trial("int8-products", "static", {"only_products": True})
    yield Trial("weights-8", "weight_only", {"bits": 8})
    if balances:
        yield Trial("int8-static-balanced", "static", {"balance": True})
    for method in _OTHER_METHODS:
        yield Trial(f"int8-static-{method}", "static", {"calibration_method": method})
    if keeps:
        for share in _STATIC_KEPT_SHARES:
            changes = {"keep_most_sensitive": share}
            yield Trial(f"int8-static-keep-{share:.0%}".rstrip("%"), "static", changes)
    if keeps and balances:
        for share in _BALANCED_KEPT_SHARES:
            changes = {**_BALANCED, "keep_most_sensitive": share}
            yield Trial(f"int8-balanced-keep-{share:.0%}".rstrip("%"), "dynamic", changes)
    if keeps:
        for share in _KEPT_SHARES:
            yield Trial(
                f"int8-keep-{share:.0%}".rstrip("%"), "dynamic", {"keep_most_sensitive": share}
            )
    yield Trial("int8-dynamic-per-tensor", "dynamic", {"per_channel": False})
    if balances:
        yield Trial("weights-4-gptq", "weight_only", {"bits": 4, "method": "gptq"})
    yield Trial("weights-4", "weight_only", {"bits": 4})
    yield Trial("fp16", "fp16", {})


def _laid(
    scope: Scope,
    subjects: Sequence[Subject],
    programs: Mapping[str, OutputRef],  # noqa: ARG001
) -> Mapping[str, Sequence[ExtraReport]]:
    """Return the report of each search, as search.json of its variant."""
    del scope
    return {
        each.variant.name: [ExtraReport(OutputRef(each.model.step, "search"), "search.json")]
        for each in subjects
        if each.variant.mode == NAME
    }


_FIDELITY = "fidelity: {data: FILE.py:CALLABLE}"
"""Key that a goal on fidelity needs."""


def _faults(variant: WrittenVariant, parts: Parts) -> Iterator[Fault]:
    """Options that a search needs, and data that its goal or its trials need."""
    name, at, node = variant.name, variant.at, variant.node
    lacks_data = parts.lacks("fidelity", "data")
    data = f" and `{_FIDELITY}`" if lacks_data else ""
    if isinstance(node.value, str):
        what = f"variant '{name}' has mode 'auto', and no goal"
        own = f"{name}: {{mode: auto, goal: {{cosine_mean: 0.995}}}}"
        yield Fault(what, at, f"write `{own}`{data}")
        return
    goal, included = node.child("goal"), node.child("include")
    tried = [each.value for each in (included.items if included else ())]
    if "static" in tried and parts.lacks("calibration", "data"):
        what = f"variant '{name}' tries 'static', and no calibration.data is named"
        yield Fault(what, at, ADD_DATA)
    asked = set() if goal is None else set(goal.members)
    if not asked and parts.sound("quantization", name, "goal"):
        what = f"variant '{name}' has mode 'auto', and no goal"
        yield Fault(what, at, f"add `goal: {{cosine_mean: 0.995}}`{data}")
    if asked - {"max_drop"} and lacks_data:
        what = f"variant '{name}' has a goal on fidelity, and no fidelity.data is named"
        yield Fault(what, at, f"add `{_FIDELITY}`")
    if "max_drop" in asked:
        what = f"variant '{name}' has the goal 'max_drop'"
        otherwise = "write `goal: {cosine_mean: 0.995}`, which goes by `fidelity`"
        yield from without_scores(parts, what, at, otherwise, of_whole=True)


FEATURE = Mode(
    name=NAME,
    precision="int8",
    tolerances={"int8": DEFAULT_TOLERANCES["int8"]},
    options=AutoOptions,
    kinds=(choose.KIND,),
    variant_faults=_faults,
    model=_model,
    laid=_laid,
    trials=_trials,
    tries=_tries,
    shown={choose.KIND.name: "search"},
    choices=(
        Choice(
            choose.KIND.name,
            is_model=True,
            figures=(
                TrialFigure("cosine_mean", "cosine"),
                TrialFigure("drop", "drop", is_loss=True),
            ),
            trials=_inputs_of_trials,
        ),
    ),
    diagnosis=DiagnosisHints(judges=(choose.KIND.name,)),
)
