import pytest

from onnxbuild.onnxkit.exporter_errors import explain_export


def explained(error, exporter="dynamo"):
    return explain_export(error, exporter, 18, "m:export")


@pytest.mark.parametrize(
    ("message", "operator"),
    [
        ("No ONNX function found for <OpOverload(op='prims.bessel_j0', overload='default')>. F",
         "prims.bessel_j0"),
        ("Exporting the operator 'aten::special_bessel_j0' to ONNX opset version 18 is not s",
         "aten::special_bessel_j0"),
        ("ONNX export failed on an operator with unrecognized namespace mine::op. If you are",
         "mine::op"),
    ],
)  # fmt: skip
def test_an_operator_is_named_however_deep_the_message_lies(message, operator):
    outer = RuntimeError("Failed to convert")
    outer.__cause__ = ValueError(message)
    found = explained(outer)
    assert f"can't translate the operator '{operator}' to opset 18" in found.what
    assert "translation" in found.fix


def test_a_violated_constraint_is_quoted():
    error = RuntimeError(
        "Constraints violated (batch)! For more information, run with TORCH_LOGS.\n"
        "  - The values of seq = L['y'].size()[0] and batch = L['x'].size()[0] must be equal.\n"
    )
    assert "The values of seq" in explained(error).what


def test_anything_else_is_its_root_cause_with_the_users_line():
    error = RuntimeError("pages and pages\nof text")
    error.__cause__ = KeyError("zork")
    error.__cause__.__cause__ = TypeError('bad thing\n  File "/m.py", line 7, in forward\n')
    found = explained(error)
    assert found.what == "the dynamo exporter failed: TypeError: bad thing"
    assert found.where == "m:export (/m.py:7)"
