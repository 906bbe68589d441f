import numpy as np
from onnx import TensorProto, helper

from onnxbuild.onnxkit.fp16.float16 import convert
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.optimize.fusing import Fusing
from onnxbuild.onnxkit.optimize.held_constants import HeldConstants
from onnxbuild.onnxkit.sessions.element_types import load_typed
from onnxbuild.onnxkit.sessions.open import open_session
from tests.onnxkit.models import model, value, weight


def test_a_model_with_an_fp16_input_is_converted_to_fp16_after_it_was_optimized(tmp_path):
    nodes = [
        helper.make_node("Add", ["half", "one"], ["more"]),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    made = model(
        nodes,
        [value("half", ["n", 2], TensorProto.FLOAT16), value("x", ["n", 2])],
        [value("more", ["n", 2], TensorProto.FLOAT16), value("y", ["n", 2])],
        [weight("one", np.ones(1, np.float16)), weight("w", np.eye(2, dtype=np.float32))],
    )
    save_model(made, tmp_path / "given")
    fused = Fusing(
        HeldConstants(tmp_path / "given"), tmp_path / "scratch", "extended", None, "r:optimize"
    ).fuse()
    save_model(fused.model, tmp_path / "fused")
    typed = load_typed(tmp_path / "fused")

    converted = convert(typed, keep_io_types=True, op_types=(), nodes=())
    save_model(converted, tmp_path / "fp16")
    session = open_session(tmp_path / "fp16", where="r:fp16/convert")

    half, x = np.full((3, 2), 1.5, np.float16), np.full((3, 2), 0.5, np.float32)
    more, y = session.run(None, {"half": half, "x": x})
    assert more.tolist() == (half + 1).tolist()
    assert y.tolist() == x.tolist()
