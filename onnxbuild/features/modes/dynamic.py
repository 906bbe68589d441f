"""`dynamic`: weights in 8 bits, activations in 8 bits at each run's own scale."""

from collections.abc import Iterator

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Variant
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.addresses import of_variant
from onnxbuild.expansion.diagnosis_hints import KeptNodes
from onnxbuild.expansion.feature import Mode, WrittenVariant
from onnxbuild.expansion.fidelity import add_sensitivity
from onnxbuild.expansion.fused import fused_for, own_address
from onnxbuild.expansion.scope import Scope
from onnxbuild.mode_steps.auto_options import without_auto
from onnxbuild.mode_steps.balancing import balanced, calibration_data
from onnxbuild.mode_steps.eight_bit_faults import missing_calibration, pairs_of_unsigned
from onnxbuild.mode_steps.saturation import add_saturation
from onnxbuild.onnxkit.accuracy.tolerances import DEFAULT_TOLERANCES
from onnxbuild.steps import balance, quantize_dynamic, round_weights, saturation
from onnxbuild.steps.quantize_dynamic import DynamicOptions, DynamicParams

_LEVELS = 127
_REDUCED_LEVELS = 64
"""The greatest integers of ONNX Runtime's quantizer, symmetric int8 without and with
`reduce_range` (ONNX_INT_TYPE_SYMMETRIC_RANGE and ONNX_INT_TYPE_REDUCED_RANGE)."""


def _model(scope: Scope, variant: Variant) -> OutputRef:
    options = without_auto(variant.options_as(DynamicOptions), scope.machine)
    inputs = {"model": _quantized(scope, variant)}
    if options.keep_most_sensitive:
        inputs["sensitivity"] = _sensitivity(scope, variant)
    if options.rounding == "gptq":
        inputs["rounded"] = _rounded(scope, variant, options, inputs["model"])
    step = scope.step(
        of_variant(scope.recipe, variant, "quantize"),
        quantize_dynamic.KIND,
        DynamicParams(options),
        inputs,
        at=variant.location,
    )
    add_saturation(scope, variant, options, OutputRef(step, "model"), inputs["model"])
    return OutputRef(step, "model")


def _quantized(scope: Scope, variant: Variant) -> OutputRef:
    """Return the model that is quantized: fused, and balanced if the options say so."""
    model = fused_for(scope, variant)
    if variant.options_as(DynamicOptions).balance:
        return balanced(scope, variant, model)
    return model


def _sensitivity(scope: Scope, variant: Variant) -> OutputRef:
    """Add the step that measures the effect of 8 bits, at each run's scale, on each node."""
    step = "balance-sensitivity" if variant.options_as(DynamicOptions).balance else "sensitivity"
    model = _quantized(scope, variant)
    return add_sensitivity(scope, model, own_address(scope.recipe, variant, step))


def _rounded(
    scope: Scope, variant: Variant, options: DynamicOptions, model: OutputRef
) -> OutputRef:
    """The model with weights that are rounded for the quantizer that follows."""
    step = scope.step(
        of_variant(scope.recipe, variant, "round"),
        round_weights.KIND,
        round_weights.RoundParams(
            **calibration_data(scope.recipe),
            levels=_REDUCED_LEVELS if options.reduce_range is True else _LEVELS,
            per_channel=options.per_channel,
            pairs=options.reduce_range == "pairs",
        ),
        {"model": model},
        at=variant.location,
        section="calibration",
    )
    return OutputRef(step, "model")


def _faults(variant: WrittenVariant, parts: Parts) -> Iterator[Fault]:
    if variant.parsed is None:
        return
    options = variant.parsed.options_as(DynamicOptions)
    yield from pairs_of_unsigned(variant.name, options, parts)
    asked = {"balance: true": options.balance, "rounding: gptq": options.rounding == "gptq"}
    for written, wanted in asked.items():
        if wanted:
            yield from missing_calibration(variant.name, written, parts)
    if options.rounding == "gptq" and options.weight_type == "uint8":
        what = (
            f"variant '{variant.name}' has `rounding: gptq`, which rounds to int8, "
            f"and weight_type '{options.weight_type}'"
        )
        at = parts.at("quantization", variant.name, "weight_type")
        yield Fault(what, at, "write `weight_type: int8`, or remove `rounding`")


FEATURE = Mode(
    name="dynamic",
    precision="int8",
    tolerances={"int8": DEFAULT_TOLERANCES["int8"]},
    words="int8 i8 8bit quantized ptdq qint8",
    options=DynamicOptions,
    kinds=(balance.KIND, round_weights.KIND, quantize_dynamic.KIND, saturation.KIND),
    variant_faults=_faults,
    model=_model,
    sensitivity=_sensitivity,
    kept_nodes=KeptNodes(quantize_dynamic.KIND.name),
)
