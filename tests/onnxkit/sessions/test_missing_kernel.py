"""A type that the provider has no kernel for is named, with what to do about it."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.sessions.open import missing_kernel_fix, open_session
from tests.onnxkit.models import model, value

SAID = "Could not find an implementation for Erf(13) node with name 'e'"


def erf(dtype):
    nodes = [
        helper.make_node("Cast", ["x"], ["c"], name="c", to=dtype),
        helper.make_node("Erf", ["c"], ["d"], name="e"),
        helper.make_node("Cast", ["d"], ["y"], name="f", to=TensorProto.FLOAT),
    ]
    return model(nodes, [value("x", [2])], [value("y", [2])])


@pytest.mark.parametrize(
    ("dtype", "name"), [(TensorProto.BFLOAT16, "bfloat16"), (TensorProto.DOUBLE, "float64")]
)
def test_a_session_that_is_refused_says_which_type_to_leave_out(tmp_path, dtype, name):
    file = tmp_path / "model.onnx"
    onnx.save(erf(dtype), file)
    with pytest.raises(StepError, match=r"Could not find an implementation for Erf") as caught:
        open_session(file)
    assert caught.value.fix == (
        f"compute in float32, as `return model.float()` does: ONNX Runtime has no Erf of {name} there"
    )


def test_another_reason_has_no_such_fix():
    assert missing_kernel_fix(SAID, erf(TensorProto.FLOAT).SerializeToString()) == ""
    assert missing_kernel_fix(SAID, erf(TensorProto.FLOAT16).SerializeToString()) != ""
    assert missing_kernel_fix("Type Error", erf(TensorProto.DOUBLE).SerializeToString()) == ""
    assert missing_kernel_fix(SAID, "/nowhere/model.onnx") == ""
