"""Triton's names of element types, and what it has no form for.

Source: triton-inference-server/common, protobuf/model_config.proto, enum DataType.
"""

from __future__ import annotations

from onnxbuild.onnxkit.packages.signature import Port

_DTYPES = {
    "bool": "BOOL", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64",
    "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64", "float16": "FP16",
    "float32": "FP32", "float64": "FP64", "string": "STRING", "bfloat16": "BF16",
}  # fmt: skip


class NoFormError(ValueError):
    """Triton has no form for a model, or for what is asked for.

    Args:
        what: One sentence.
        fix: What to do.
    """

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.fix = fix


_LEAVE_OUT = "take the variant out of `packages: {variants: [...]}`"


def data_type(port: Port) -> str:
    """Return the element type, as `TYPE_FP32`.

    Raises:
        NoFormError: Triton has none.
    """
    if port.dtype not in _DTYPES:
        what = f"'{port.name}' is {port.dtype}, which Triton has no data type for"
        raise NoFormError(what, _LEAVE_OUT)
    return f"TYPE_{_DTYPES[port.dtype]}"


def check_rank(port: Port) -> None:
    """Check that the number of dimensions is known.

    Raises:
        NoFormError: It is not.
    """
    if port.shape is None:
        what = f"'{port.name}' has no known shape, and Triton needs its number of dimensions"
        raise NoFormError(what, _LEAVE_OUT)
