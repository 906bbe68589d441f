"""`fp16`: weights and arithmetic in 16-bit floats."""

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Variant
from onnxbuild.expansion.addresses import of_variant
from onnxbuild.expansion.diagnosis_hints import KeptNodes
from onnxbuild.expansion.feature import Mode
from onnxbuild.expansion.fused import fused_for
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.accuracy.tolerances import DEFAULT_TOLERANCES
from onnxbuild.steps import convert_fp16
from onnxbuild.steps.convert_fp16 import Fp16Options, Fp16Params

_LARGEST = 65504.0
"""Largest finite value of fp16."""


def _model(scope: Scope, variant: Variant) -> OutputRef:
    inputs = {"model": fused_for(scope, variant)}
    params = Fp16Params(variant.options_as(Fp16Options))
    if params.options.keep_fp32 != "none":
        inputs["reference"] = scope.reference(None, {})
    address = of_variant(scope.recipe, variant, "convert")
    step = scope.step(address, convert_fp16.KIND, params, inputs, at=variant.location)
    return OutputRef(step, "model")


FEATURE = Mode(
    name="fp16",
    precision="fp16",
    tolerances={"fp16": DEFAULT_TOLERANCES["fp16"]},
    words="float16 half f16",
    options=Fp16Options,
    kinds=(convert_fp16.KIND,),
    model=_model,
    kept_nodes=KeptNodes(
        convert_fp16.KIND.name, option="node_block_list", alone=False, largest=_LARGEST
    ),
)
