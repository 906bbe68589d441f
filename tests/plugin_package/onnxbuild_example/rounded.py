"""The mode `rounded`: weights with fewer bits of mantissa, which compress better."""

from dataclasses import dataclass

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.params import option
from onnxbuild.core.recipe import Variant
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.expansion.addresses import of_variant
from onnxbuild.expansion.feature import Mode
from onnxbuild.expansion.fused import fused_for
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.accuracy.tolerances import Tolerance

MODEL = "model.onnx"


@dataclass(frozen=True)
class RoundedOptions:
    """How much of each weight is kept."""

    bits: int = option(12, help="bits of the mantissa that stay", minimum=1, maximum=23)


def run(context: StepContext) -> Outcome:
    """Write the model with rounded weights."""
    import numpy as np
    import onnx
    from onnx import numpy_helper

    model = onnx.load(context.input("model") / MODEL)
    drop = 23 - context.params.bits
    rounded = 0
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            bits = numpy_helper.to_array(tensor).view(np.uint32)
            kept = (bits + np.uint32(1 << drop >> 1)) >> np.uint32(drop) << np.uint32(drop)
            tensor.CopyFrom(numpy_helper.from_array(kept.view(np.float32), tensor.name))
            rounded += 1
    onnx.save(model, context.output("model") / MODEL)
    return Outcome(metrics={"rounded_weights": rounded})


KIND = StepKind(
    name="example-round",
    version=1,
    params=RoundedOptions,
    inputs=("model",),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "numpy"),
    run=run,
)


def _model(scope: Scope, variant: Variant) -> OutputRef:
    options = variant.options_as(RoundedOptions)
    address = of_variant(scope.recipe, variant, "round")
    model = {"model": fused_for(scope, variant)}
    return OutputRef(scope.step(address, KIND, options, model, at=variant.location), "model")


FEATURE = Mode(
    name="rounded",
    precision="rounded",
    tolerances={"rounded": Tolerance(cosine_min=0.999, equal_min=0.99)},
    words="truncated mantissa",
    options=RoundedOptions,
    kinds=(KIND,),
    model=_model,
)
