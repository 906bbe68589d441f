"""Models that no library can follow: refused before one tries, in the time that their size takes."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxbuild.core.errors import UsageError
from onnxbuild.onnxkit.model.model_files import load_graph
from onnxbuild.onnxkit.model.unsound import unsound

ADD = helper.make_node("Add", ["x", "w"], ["y"], name="add")
DOMAIN = "f"


def weight(dims: tuple[int, ...] = (4,), data_type: int = TensorProto.FLOAT) -> onnx.TensorProto:
    return TensorProto(name="w", data_type=data_type, dims=dims, raw_data=bytes(16))


def model(
    node: onnx.NodeProto = ADD,
    weights: tuple[onnx.TensorProto, ...] = (),
    functions: tuple[onnx.FunctionProto, ...] = (),
) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 4]) for n in "xy")
    graph = helper.make_graph([node], "g", [x], [y], list(weights))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=functions)


def function(name: str, *calls: str) -> onnx.FunctionProto:
    """A function that calls others one after the other."""
    values = ["a", *(f"v{n}" for n in range(1, len(calls))), "b"]
    nodes = [
        helper.make_node(op, [values[n]], [values[n + 1]], domain="" if op == "Relu" else DOMAIN)
        for n, op in enumerate(calls)
    ]
    return helper.make_function(DOMAIN, name, ["a"], ["b"], nodes, [helper.make_opsetid("", 17)])


CALL = helper.make_node("F0", ["x"], ["y"], domain=DOMAIN)
DOUBLED = (
    *(function(f"F{n}", f"F{n + 1}", f"F{n + 1}") for n in range(40)),
    function("F40", "Relu"),
)


@pytest.mark.parametrize(
    ("hostile", "why"),
    [
        (model(CALL, functions=(function("F0", "F0"),)), "call themselves: F0 -> F0"),
        (
            model(CALL, functions=(function("F0", "F1"), function("F1", "F0"))),
            "call themselves: F",
        ),
        (model(CALL, functions=DOUBLED), f"stand for {2**40:,} nodes; at most 1,000,000"),
        (model(weights=(weight(data_type=999),)), "has the element type 999, which ONNX does not"),
        (model(weights=(weight((-1, -4)),)), r"has a negative size: \[-1, -4\]"),
        (model(weights=(TensorProto(name="w", data_type=1, dims=[2**62]),)), "has no values, wh"),
        (
            model(weights=(weight((2**40,)),)),
            "has 16 bytes of values, where its shape needs 4,398",
        ),
    ],
    ids=[
        "recursion",
        "two functions",
        "doubled 40 times",
        "element type",
        "negative size",
        "empty",
        "too short",
    ],
)
def test_a_model_that_no_library_can_follow_is_refused(tmp_path, hostile, why):
    (tmp_path / "model.onnx").write_bytes(hostile.SerializeToString())
    with pytest.raises(UsageError, match=why):
        load_graph(tmp_path / "model.onnx")


def test_names_that_are_no_text_are_refused(tmp_path):
    content = model(weights=(weight(),)).SerializeToString().replace(b"add", b"\xff\xfe\xfd")
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(UsageError, match="a name in it is not UTF-8"):
        load_graph(tmp_path / "model.onnx")


def test_a_model_with_many_functions_is_sound(tmp_path: Path):
    chained = (*(function(f"F{n}", f"F{n + 1}") for n in range(2000)), function("F2000", "Relu"))
    assert unsound(model(CALL, functions=chained)) == ""
    assert unsound(model(weights=(numpy_helper.from_array(np.ones(4, np.float32), "w"),))) == ""
