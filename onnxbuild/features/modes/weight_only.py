"""`weight_only`: weights in 4 or 8 bits, arithmetic in fp32."""

from collections.abc import Iterator

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Variant
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.addresses import of_variant
from onnxbuild.expansion.diagnosis_hints import KeptNodes
from onnxbuild.expansion.feature import Mode, WrittenVariant
from onnxbuild.expansion.fidelity import add_sensitivity, will_rank
from onnxbuild.expansion.fused import fused_for, own_address
from onnxbuild.expansion.scope import Scope
from onnxbuild.mode_steps.balancing import calibration_data
from onnxbuild.onnxkit.accuracy.tolerances import DEFAULT_TOLERANCES
from onnxbuild.onnxkit.data.calibration_data import DataParams
from onnxbuild.onnxkit.quantize.blockwise import BlockGrid
from onnxbuild.steps import hessians, quantize_weights
from onnxbuild.steps.quantize_weights import WeightOptions, WeightParams

_HALF_BYTE, _BYTE_BITS = 4, 8


def _model(scope: Scope, variant: Variant) -> OutputRef:
    inputs = {"model": fused_for(scope, variant)}
    params = WeightParams(variant.options_as(WeightOptions))
    if params.options.method == "gptq":
        inputs["hessians"] = _hessians(scope, variant, inputs["model"])
    if params.options.sensitive_in_8_bits:
        inputs["sensitivity"] = _sensitivity(scope, variant)
    address = of_variant(scope.recipe, variant, "quantize")
    step = scope.step(address, quantize_weights.KIND, params, inputs, at=variant.location)
    return OutputRef(step, "model")


def _hessians(scope: Scope, variant: Variant, model: OutputRef) -> OutputRef:
    step = scope.step(
        of_variant(scope.recipe, variant, "hessians"),
        hessians.KIND,
        DataParams(**calibration_data(scope.recipe)),
        {"model": model},
        at=variant.location,
        section="calibration",
    )
    return OutputRef(step, "hessians")


def _sensitivity(scope: Scope, variant: Variant) -> OutputRef:
    """Add the step that measures the effect of the bits that most weights get on each node."""
    options = variant.options_as(WeightOptions)
    hqq = options.method == "hqq"
    grid = BlockGrid(options.bits, options.block_size, options.symmetric, fractional=hqq)
    bits = "" if options.bits == _HALF_BYTE else f"{options.bits}-bit-"
    size = f"{options.block_size}{'-symmetric' if options.symmetric else '-hqq' if hqq else ''}"
    address = own_address(scope.recipe, variant, f"{bits}weights-{size}-sensitivity")
    return add_sensitivity(scope, fused_for(scope, variant), address, weights=grid)


def _precision_of(options: WeightOptions) -> str:
    return "int8" if options.bits == _BYTE_BITS else "int4"


def _faults(variant: WrittenVariant, parts: Parts) -> Iterator[Fault]:
    if variant.parsed is None:
        return
    options, name = variant.parsed.options_as(WeightOptions), variant.name
    if options.method == "hqq" and options.symmetric:
        what = (
            f"variant '{name}' has method 'hqq', which finds zero points, "
            "and `symmetric: true`, which keeps none"
        )
        at = parts.at("quantization", name, "symmetric")
        yield Fault(what, at, "write `method: rtn`, or remove `symmetric`")
    mixes = bool(options.nodes_in_8_bits or options.sensitive_in_8_bits)
    others = mixes or "Gather" in options.op_types
    if options.method == "hqq" and options.scales == "search" and not others:
        what = f"variant '{name}' has method 'hqq', which finds scales by itself, and `scales: search`"
        at = parts.at("quantization", name, "scales")
        yield Fault(what, at, "write `method: rtn`, or remove `scales`")
    if mixes and options.bits == _BYTE_BITS:
        key = "nodes_in_8_bits" if options.nodes_in_8_bits else "sensitive_in_8_bits"
        what = f"variant '{name}' has `{key}`, and `bits: 8` for all others, too"
        yield Fault(
            what, parts.at("quantization", name, key), f"write `bits: 4`, or remove `{key}`"
        )
    if options.sensitive_in_8_bits and not will_rank(parts):
        what = f"variant '{name}' has `sensitive_in_8_bits`, and nothing ranks its nodes"
        at = parts.at("quantization", name, "sensitive_in_8_bits")
        fix = (
            "add `generate: {prompts: ...}` for a decoder, or `fidelity: {data: FILE.py:CALLABLE}`"
        )
        yield Fault(what, at, fix)
    if options.method == "gptq" and parts.lacks("calibration", "data"):
        what = f"variant '{name}' has method 'gptq', and no calibration.data is named"
        at = parts.at("quantization", name, "method")
        yield Fault(what, at, "add `calibration: {data: FILE.py:CALLABLE}`")


FEATURE = Mode(
    name="weight_only",
    precision="int4",
    precision_of=_precision_of,
    tolerances={bits: DEFAULT_TOLERANCES[bits] for bits in ("int4", "int8")},
    words="int4 i4 4bit w4 w8 w4a16 weight-only weights gptq awq hqq rtn",
    options=WeightOptions,
    kinds=(hessians.KIND, quantize_weights.KIND),
    variant_faults=_faults,
    model=_model,
    sensitivity=_sensitivity,
    kept_nodes=KeptNodes(quantize_weights.KIND.name),
)
