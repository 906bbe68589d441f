"""Element types that numpy lacks: feeds hold bfloat16 as float32 values, and strings as Unicode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.frameworks import np, onnxruntime, torch

BFLOAT16, STRING = "bfloat16", "string"
_ONNX_BFLOAT16 = 16
"""TensorProto.BFLOAT16, which ONNX Runtime asks for where bits alone say nothing."""


def numpy_dtype(dtype: str) -> np.dtype:
    """Return what feeds of a declared dtype are held in: float32 for bfloat16, Unicode for strings."""
    return np.dtype({BFLOAT16: "float32", STRING: "U"}.get(dtype, dtype))


def rounded(array: np.ndarray) -> np.ndarray:
    """Float32 values as bfloat16 holds them: to the nearest, ties to even; NaN stays NaN."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    up = bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))
    kept: np.ndarray = (up & np.uint32(0xFFFF0000)).view(np.float32)
    found: np.ndarray = np.where(np.isfinite(array), kept.reshape(array.shape), array)
    return found


def tensor_of(name: str, dtype: str, array: np.ndarray, where: str = "") -> torch.Tensor:
    """A feed as a tensor of the declared dtype, which shares no memory with it.

    Raises:
        StepError: It is of strings.
    """
    if dtype == STRING:
        raise StepError(
            f"input '{name}' is of strings, and PyTorch has no string tensors",
            where=where,
            fix=f"tokenize outside of the module: `{name}: {{dtype: int64, shape: [...]}}`",
        )
    tensor = torch.from_numpy(array.copy())
    return tensor.to(torch.bfloat16) if dtype == BFLOAT16 else tensor


def ort_feeds(session: onnxruntime.InferenceSession, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """The feeds with those of bfloat16 as OrtValues: `session.run` takes no array of that dtype.

    Args:
        feeds: Input -> array; OrtValues stay as they are.
    """
    made = dict(feeds)
    for each in session.get_inputs():
        array = made.get(each.name)
        if each.type == "tensor(bfloat16)" and isinstance(array, np.ndarray):
            upper = rounded(array).reshape(-1).view(np.uint32) >> np.uint32(16)
            bits = upper.astype(np.uint16).reshape(array.shape)
            made[each.name] = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(
                bits, _ONNX_BFLOAT16
            )
    return made
