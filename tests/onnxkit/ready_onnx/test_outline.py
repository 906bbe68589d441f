"""The outline of a model, held against onnx's own reader."""

import contextlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from onnxbuild.onnxkit.ready_onnx.outline import outline_of
from onnxbuild.onnxkit.ready_onnx.wire import OutlineError
from tests.onnxkit.models import branching, contrib, linear, model, save, value, weight


def by_onnx(made):
    """(name, dtype, shape) of inputs without weights, of outputs; opset."""
    weights = {each.name for each in made.graph.initializer}

    def shown(each):
        tensor = each.type.tensor_type
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
        shape = tuple(
            dim.dim_value if dim.HasField("dim_value") else dim.dim_param
            for dim in tensor.shape.dim
        )
        return each.name, {"object": "string"}.get(dtype, dtype), shape

    inputs = [shown(each) for each in made.graph.input if each.name not in weights]
    opset = next((each.version for each in made.opset_import if not each.domain), 0)
    return inputs, [shown(each) for each in made.graph.output], opset


def by_outline(path):
    found = outline_of(path)
    values = [[(e.name, e.dtype, e.shape) for e in v] for v in (found.inputs, found.outputs)]
    return (*values, found.opset)


@pytest.mark.parametrize("made", [linear(), contrib(), branching(), linear(opset=11)])
def test_it_says_what_onnx_says(tmp_path, made):
    assert by_outline(save(made, tmp_path / "m.onnx")) == by_onnx(made)


def test_weights_that_are_inputs_too_are_none(tmp_path):
    made = linear()
    made.graph.input.append(value("w", [4, 3]))
    assert [each.name for each in outline_of(save(made, tmp_path / "m.onnx")).inputs] == ["x"]


@pytest.mark.parametrize(("shape", "found"), [(["?", 4], ("", 4)), (None, None)])
def test_a_size_that_is_not_known_has_no_name(tmp_path, shape, found):
    made = linear()
    made.graph.input[0].CopyFrom(value("x", shape))
    assert outline_of(save(made, tmp_path / "m.onnx")).inputs[0].shape == found


def embedding(axis=0, cast=False):
    """y = table[ids]."""
    nodes = [helper.make_node("Gather", ["table", "i" if cast else "ids"], ["y"], axis=axis)]
    if cast:
        nodes.insert(0, helper.make_node("Cast", ["ids"], ["i"], to=TensorProto.INT64))
    ids = value("ids", ["batch", "sequence"], TensorProto.INT32 if cast else TensorProto.INT64)
    return model(
        nodes, [ids], [value("y", None)], [weight("table", np.zeros((50, 8), np.float32))]
    )


@pytest.mark.parametrize(("made", "rows"), [(embedding(), 50), (embedding(-1), 8)])
def test_indices_of_a_table_know_its_rows(tmp_path, made, rows):
    assert outline_of(save(made, tmp_path / "m.onnx")).inputs[0].table == rows


def test_files_of_weights_are_found_in_branches_too(tmp_path):
    made = branching()
    inner = made.graph.node[0].attribute[0].g
    inner.initializer.append(weight("deep", np.ones(2, np.float32)))
    for tensor, file in ((made.graph.initializer[0], "a.data"), (inner.initializer[0], "b.data")):
        onnx.external_data_helper.set_external_data(tensor, location=file)
        tensor.ClearField("raw_data")
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    assert outline_of(tmp_path / "m.onnx").files == (Path("a.data"), Path("b.data"))


def test_a_file_that_is_cut_anywhere_is_refused_or_misses_its_end_alone(tmp_path):
    content = linear().SerializeToString()
    path = tmp_path / "m.onnx"
    for size in range(len(content)):
        path.write_bytes(content[:size])
        try:
            found = outline_of(path)
        except OutlineError:
            continue
        assert [each.name for each in found.inputs] == ["x"], size


@given(st.binary(max_size=200))
def test_other_files_are_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("m") / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(OutlineError):
        outline_of(path)


@given(st.integers(min_value=0), st.integers(0, 255))
def test_a_changed_byte_is_refused_or_read(tmp_path_factory, place, byte):
    content = bytearray(branching().SerializeToString())
    content[place % len(content)] = byte
    path = tmp_path_factory.mktemp("m") / "m.onnx"
    path.write_bytes(content)
    with contextlib.suppress(OutlineError):
        outline_of(path)
