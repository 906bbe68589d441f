"""ONNX files that leave out, or get wrong, what ONNX Runtime finds out by itself."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, ValueInfoProto
from onnx.helper import make_graph, make_node, make_opsetid

from onnxbuild.core.recipe import FILE_DATA, Axis, DummyInput, Entrypoint
from onnxbuild.onnxkit.model.inspect import dimensions
from onnxbuild.steps.check import KIND as CHECK
from onnxbuild.steps.check import CheckParams
from onnxbuild.steps.import_onnx import KIND, ImportOnnxParams
from tests.fakes.step_context import run_step
from tests.onnxkit.models import model, value, weight

INPUTS = (DummyInput("x", "float32", ("batch", 8)),)
AXES = (Axis("batch", 1, 8, 2),)
PRODUCT = [make_node("MatMul", ["x", "w"], ["h"]), make_node("Relu", ["h"], ["y"])]
GELU = [PRODUCT[0], make_node("Gelu", ["h"], ["y"], domain="com.microsoft")]
WEIGHTS = [weight("w", np.ones((8, 4), np.float32)), weight("zero", np.float32(0))]
THEN = make_graph([make_node("Relu", ["x"], ["a"])], "then", [], [value("a", [])])
ELSE = make_graph([make_node("Neg", ["x"], ["b"])], "else", [], [value("b", None)])
BRANCH = [
    make_node("ReduceSum", ["x"], ["s"], keepdims=0), make_node("Greater", ["s", "zero"], ["c"]),
    make_node("If", ["c"], ["y"], then_branch=THEN, else_branch=ELSE),
]  # fmt: skip
NO_ELEMENT_TYPE = ValueInfoProto(name="y")
NO_ELEMENT_TYPE.type.tensor_type.SetInParent()
KNOWN, NAMED = ["batch", 4], ["batch", "y_dim_1"]
Y = value("y", KNOWN)

CASES = {
    "output a scalar": (PRODUCT, value("y", []), {}, KNOWN),
    "output without a shape": (PRODUCT, value("y", None), {}, KNOWN),
    "output of another rank": (PRODUCT, value("y", [1, "batch", 4]), {}, KNOWN),
    "output of another size": (PRODUCT, value("y", ["batch", 5]), {}, KNOWN),
    "output without a type": (PRODUCT, ValueInfoProto(name="y"), {}, KNOWN),
    "output without an element type": (PRODUCT, NO_ELEMENT_TYPE, {}, KNOWN),
    "value inside a scalar": (PRODUCT, Y, {"value_info": [value("h", [])]}, KNOWN),
    "value inside of another size": (PRODUCT, Y, {"value_info": [value("h", ["batch", 5])]}, KNOWN),
    "value inside of another type": (
        PRODUCT, Y, {"value_info": [value("h", KNOWN, TensorProto.INT64)]}, KNOWN,
    ),
    "output of another domain's operator": (GELU, value("y", None), {}, NAMED),
    "outputs of branches": (BRANCH, value("y", ["batch", 8]), {}, ["batch", 8]),
    "a true scalar": ([make_node("ReduceSum", ["x"], ["y"], keepdims=0)], value("y", None), {}, []),
    "a shape that the values decide": (
        [make_node("NonZero", ["x"], ["y"])], value("y", None, TensorProto.INT64), {},
        [2, "y_dim_1"],
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # as a child runs a step


@pytest.mark.parametrize("name", CASES)
def test_what_the_operators_contradict_is_inferred_again_with_a_note(name, tmp_path):
    nodes, output, said, shape = CASES[name]
    imports = [make_opsetid("", 17), make_opsetid("com.microsoft", 1)]
    given = model(nodes, [value("x", ["batch", 8])], [output], WEIGHTS, imports=imports, **said)
    file = tmp_path / "given.onnx"
    onnx.save(given, file)
    params = ImportOnnxParams(Entrypoint(FILE_DATA, files=(str(file),)), INPUTS, ("y",), AXES)
    outcome, context = run_step(KIND, params, tmp_path / "import")
    assert [note for note in outcome.notes if "inferred again for" in note]
    made = onnx.load(context.output("model") / "model.onnx")
    assert dimensions(made.graph.output[0]) == shape
    inputs = {"model": context.output("model")}
    checked, _ = run_step(CHECK, CheckParams(INPUTS, ("y",), AXES, 17), tmp_path / "check", inputs)
    assert checked.findings == ()
