"""`auto`: the fastest of several ways that keeps to a goal."""

import itertools
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
from onnxbuild.expansion.fidelity import SECTION as FIDELITY
from onnxbuild.expansion.fidelity import add_fidelity, will_rank
from onnxbuild.expansion.fused import fused_for, own_address
from onnxbuild.expansion.generation import SECTION as GENERATE
from onnxbuild.expansion.generation import add_generation
from onnxbuild.expansion.pipelines import is_decoding, will_be_decoding
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.sessions import VariantSession, settings_of
from onnxbuild.expansion.variants import flow, written_variant
from onnxbuild.mode_steps.eight_bit_faults import ADD_DATA
from onnxbuild.onnxkit.accuracy.tolerances import DEFAULT_TOLERANCES
from onnxbuild.onnxkit.pipelines.built_in import GREEDY
from onnxbuild.steps import choose
from onnxbuild.steps.calibrate import CalibrationOptions
from onnxbuild.steps.choose import AutoOptions, Tried

NAME = "auto"

_TAKEN = ("model", "fidelity", "evaluation", "generation")
"""Outputs of each trial that the step that chooses takes."""

_KEPT_SHARES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
"""Shares of the quantizable nodes that trials keep in fp32, the most sensitive first."""

_BALANCED_KEPT_SHARES = (0.05, 0.1, 0.2, 0.35)

_OTHER_METHODS = ("mse", "percentile")
"""Calibration methods tried after the recipe's own. Entropy clips what transformers need, and did no better on
convolutions."""

_STATIC_KEPT_SHARES = (0.1, 0.3)

_EIGHT_BIT_SHARES = (0, 0.1, 0.25)
"""Shares of the weights that get 8 bits where the smallest model is asked for."""

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
        generated = None
        if options.goal.perplexity_ratio is not None:
            generated = add_generation(scope, each, models[trial], recipe.targets[0], gates=False)
        if generated is not None:
            inputs[_of_trial("generation", trial)] = generated
    if not choice and options.goal.size is None:
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
    calibration = recipe.entrypoints.get("calibration")
    has_data = calibration is not None and calibration.target != DUMMY_DATA
    if options.goal.size is not None:
        yield from itertools.islice(_by_bits(has_data=has_data), options.trials)
        return
    include = options.include or (
        ("dynamic", "static") if "calibration" in recipe.entrypoints else ("dynamic",)
    )
    in_whole = options.goal.perplexity_ratio is not None and is_decoding(recipe)
    ladder = _ladder(keeps=in_whole or FIDELITY in recipe.entrypoints, balances=has_data)
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


def _by_bits(*, has_data: bool) -> Iterator[Trial]:
    """Yield ways to keep weights in few bits, down to 4 for all of them.

    Fractional zero points are tried in blocks of 32, where they take one column more for each 32: they hold weights that
    come from a file of 4 bits, and others may do as well with GPTQ.

    Args:
        has_data: There is calibration data, for GPTQ.
    """
    least = {
        "scales": "search",
        "scales_dtype": "float16",
        "op_types": ("MatMul", "Gemm", "Gather"),
    }
    own = {**least, "method": "gptq" if has_data else "rtn"}
    fractional = {**least, "method": "hqq"}
    yield Trial("weights-4-by-64", "weight_only", {**own, "block_size": 64})
    for share in _EIGHT_BIT_SHARES:
        end = f"-and-{share:.0%}-in-8".replace("%", "") if share else ""
        changes = {"sensitive_in_8_bits": share} if share else {}
        yield Trial(f"weights-4{end}", "weight_only", {**own, **changes})
        yield Trial(f"weights-4-hqq{end}", "weight_only", {**fractional, **changes})
    yield Trial("weights-8", "weight_only", {**own, "bits": 8, "block_size": 64})


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
    if "size" in asked:
        yield from _size_faults(variant, parts, asked)
    if (
        "perplexity_ratio" in asked
        and parts.node(GENERATE) is None
        and not will_be_decoding(parts)
    ):
        what = (
            f"variant '{name}' has the goal 'perplexity_ratio', and the recipe has no `{GENERATE}`"
        )
        yield Fault(
            what,
            at,
            f"add `{GENERATE}: {{prompts: FILE.py:CALLABLE}}`, or, next to `components`, `pipeline: {{run: {GREEDY}}}`",
        )
    if asked - {"max_drop", "perplexity_ratio", "size"} and lacks_data:
        what = f"variant '{name}' has a goal on fidelity, and no fidelity.data is named"
        yield Fault(what, at, f"add `{_FIDELITY}`")
    if "max_drop" in asked:
        what = f"variant '{name}' has the goal 'max_drop'"
        otherwise = "write `goal: {cosine_mean: 0.995}`, which goes by `fidelity`"
        yield from without_scores(parts, what, at, otherwise, of_whole=True)


def _size_faults(variant: WrittenVariant, parts: Parts, asked: set[str]) -> Iterator[Fault]:
    """Bounds without which the smallest is always 4 bits, and options that say nothing there."""
    name = variant.name
    at = parts.at("quantization", name, "goal", "size")
    if asked == {"size"}:
        what = f"variant '{name}' has the goal 'size', and nothing says what may be lost"
        yield Fault(what, at, "write `goal: {perplexity_ratio: 1.02, size: smallest}`")
    if variant.node.child("include") is not None:
        what = f"variant '{name}' has the goal 'size', whose trials are of mode 'weight_only', and `include`"
        yield Fault(what, parts.at("quantization", name, "include"), "remove `include`, or `size`")
    if not will_rank(parts):
        what = f"variant '{name}' has the goal 'size', and nothing ranks its nodes"
        yield Fault(
            what, at, f"add `{_FIDELITY}`, or `{GENERATE}: {{prompts: ...}}` for a decoder"
        )


FEATURE = Mode(
    name=NAME,
    precision="int8",
    precision_of=lambda options: "int8" if options.goal.size is None else "int4",
    tolerances={bits: DEFAULT_TOLERANCES[bits] for bits in ("int4", "int8")},
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
                TrialFigure("perplexity_ratio", "perplexity ratio", is_loss=True),
            ),
            trials=_inputs_of_trials,
        ),
    ),
    diagnosis=DiagnosisHints(judges=(choose.KIND.name,)),
)
