import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.export.errors import NoExporterError, explain_export, explain_failed_run
from onnxbuild.onnxkit.model.opsets import OpsetError


def explained(error, exporter="dynamo"):
    return explain_export(error, exporter, 18, "m:export")


@pytest.mark.parametrize(
    ("message", "operator"),
    [
        ("No ONNX function found for <OpOverload(op='prims.bessel_j0', overload='default')>. F",
         "prims.bessel_j0"),
        ("Exporting the operator 'aten::special_bessel_j0' to ONNX opset version 18 is not s",
         "aten::special_bessel_j0"),
    ],
)  # fmt: skip
def test_an_operator_is_named_however_deep_the_message_lies(message, operator):
    outer = RuntimeError("Failed to convert")
    outer.__cause__ = ValueError(message)
    found = explained(outer)
    assert f"can't translate the operator '{operator}' to opset 18" in found.what
    assert "translation" in found.fix


@pytest.mark.parametrize(
    "message",
    [
        "No ONNX function found for <OpOverload(op='mine.op', overload='default')>. Failure",
        "ONNX export failed on an operator with unrecognized namespace mine::op. If you are",
    ],
)
def test_an_operator_of_the_users_is_named_as_such(message):
    found = explained(RuntimeError(message))
    assert "can't translate your operator 'mine::op' to ONNX" in found.what
    assert "{torch.ops.mine.op.default: FUNCTION}" in found.fix
    assert 'nodes: {"mine::op": "DOMAIN::NAME"}' in found.fix


@pytest.mark.parametrize(
    ("message", "operator", "least"),
    [
        (
            "Exporting the operator 'aten::silu' to ONNX opset version 11 is not supported. Support for "  # noqa: ISC004
            "this operator was added in version 14, try exporting with this version.",
            "aten::silu",
            14,
        ),
        ("Unsupported: ONNX export of repeat_interleave in opset 11. Please try opset version 13.",
         "repeat_interleave", 13),
    ],
)  # fmt: skip
def test_the_opset_that_the_exporter_names_is_the_fix(message, operator, least):
    found = explain_export(RuntimeError(message), "torchscript", 11, "m:export")
    assert isinstance(found, OpsetError)
    assert found.least == least
    assert found.fix == f"write `opset: {least}`"
    assert f"needs opset {least} for the operator '{operator}'" in found.what


def test_an_operator_that_no_opset_helps_is_not_given_one():
    reported = "Exporting the operator 'aten::special_bessel_j0' to ONNX opset version 18 is not supported"
    assert "opset" not in explained(RuntimeError(reported), "torchscript").fix


def test_what_onnx_runtime_cant_run_of_a_new_opset_is_done_without_below_it():
    reported = "at batch=2 ONNX Runtime fails: running RotaryEmbedding node. Name:'node_RotaryEmbedding_367'"
    error = StepError(reported, where="m:export", fix="forward must not choose by sizes")
    found = explain_failed_run(error, "dynamo", 23)
    assert (found.what, found.where, found.fix) == (reported, "m:export", "write `opset: 22`")
    for other in (
        explain_failed_run(error, "torchscript", 23),
        explain_failed_run(error, "dynamo", 22),
    ):
        assert other is error
    older = StepError(
        "at batch=2 ONNX Runtime fails: running Reshape node. Name:''", where="m:export"
    )
    assert explain_failed_run(older, "dynamo", 18) is older


def test_a_projection_is_what_no_exporter_has():
    reported = "at batch=2 ONNX Runtime fails: running LSTM node. Name:'l' Status Message: Input initial_c must have shape {1,2,2}."
    found = explain_failed_run(StepError(reported, fix="change forward"), "dynamo", 18)
    form = "Unsupported: ONNX export of operator LSTM, LSTMs with projections. Please report it."
    other = explained(RuntimeError(form), "torchscript")
    assert isinstance(found, NoExporterError)
    assert isinstance(other, NoExporterError)
    assert found.fix == other.fix
    assert "proj_size=0" in found.fix
    assert found.what == reported


def test_packed_sequences_are_named_with_the_line_that_packs_them():
    def line_of(operator):
        return "m.py:6" if operator == "aten::_pack_padded_sequence" else ""

    error = explain_export(
        RuntimeError("vector::_M_range_check"), "torchscript", 18, "m:export", line_of
    )
    assert isinstance(error, NoExporterError)
    assert error.what == "the torchscript exporter can't translate sequences that are packed"
    assert error.where == "m.py:6"


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
