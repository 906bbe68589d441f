"""digits::softclip in ONNX: a function of ONNX's own operators, which any runtime has."""

import torch
from digits_operator import softclip  # noqa: F401 - defines torch.ops.digits.softclip
from onnxscript import FLOAT, script
from onnxscript import opset18 as op
from onnxscript.values import Opset


@script(Opset("digits.functions", 1))
def Softclip(x: FLOAT[...], limit: float) -> FLOAT[...]:  # noqa: N802 - the function's name in ONNX
    """limit * tanh(x / limit)."""
    bound = op.Constant(value_float=limit)
    return op.Mul(bound, op.Tanh(op.Div(x, bound)))


def translations():
    """PyTorch operator -> what it is in ONNX."""
    return {torch.ops.digits.softclip.default: Softclip}
