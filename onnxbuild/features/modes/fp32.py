"""`none`: the fused model as it is, in fp32."""

from onnxbuild.expansion.feature import Mode
from onnxbuild.expansion.fused import fused_for
from onnxbuild.onnxkit.accuracy.tolerances import DEFAULT_TOLERANCES

FEATURE = Mode(
    name="none",
    precision="fp32",
    tolerances={"fp32": DEFAULT_TOLERANCES["fp32"]},
    words="fp32 float32 float f32 full off no original",
    model=fused_for,
    is_plain=True,
)
