"""Where two artifacts part: named down to the element, the attribute, the key or the byte."""

from __future__ import annotations

import json

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxbuild.onnxkit.differences.first_difference import first_difference
from onnxbuild.onnxkit.differences.values import array_difference
from onnxbuild.onnxkit.model.model_files import save_model
from tests.onnxkit.models import linear, weight


def folders(tmp_path, one, other, name):
    """The difference of two artifacts of one file each."""
    for side, content in (("one", one), ("other", other)):
        (tmp_path / side).mkdir(parents=True)
        (tmp_path / side / name).write_bytes(content)
    return str(first_difference(tmp_path / "one", tmp_path / "other"))


def models(tmp_path, one, other, **options):
    save_model(one, tmp_path / "one", **options)
    save_model(other, tmp_path / "other", **options)
    return str(first_difference(tmp_path / "one", tmp_path / "other"))


def changed_weight(made):
    array = numpy_helper.to_array(made.graph.initializer[0]).copy()
    array[1, 2] += 0.5
    array[3, 0] -= 0.25
    made.graph.initializer[0].CopyFrom(weight("w", array))
    return made


# --- arrays ----------------------------------------------------------------------------------------


def test_equal_arrays_do_not_differ():
    assert array_difference(np.arange(5), np.arange(5)) == ""
    assert array_difference(np.zeros((0, 3)), np.zeros((0, 3))) == ""
    nan = np.array([np.nan], np.float32)
    assert array_difference(nan, nan.copy()) == ""


def test_an_array_says_how_many_where_and_by_how_much():
    one = np.zeros((2, 3), np.float32)
    other = one.copy()
    other[1, 1], other[1, 2] = 0.25, -2
    expected = "float32 [2, 3]: 2 of 6 differ, by at most 2, the first at [1, 1]: 0 -> 0.25"
    assert array_difference(one, other) == expected


def test_large_arrays_are_compared_in_pieces():
    one = np.zeros((3, 1 << 20), np.float32)
    other = one.copy()
    other[1, 7], other[2, 9] = 1, 3
    said = "float32 [3, 1048576]: 2 of 3,145,728 differ, by at most 3, the first at [1, 7]: 0 -> 1"
    assert array_difference(one, other) == said


def test_bits_count_and_not_only_numbers():
    one, other = np.array([0.0]), np.array([-0.0])
    said = "float64 [1]: 1 of 1 differ, by at most 0, the first at [0]: 0 -> -0"
    assert array_difference(one, other) == said
    said = "float64 [1]: 1 of 1 differ, the first at [0]: 0 -> nan"
    assert array_difference(one, np.array([np.nan])) == said
    said = (
        "float64 [2]: 2 of 2 differ, some from or to NaN or infinity, the first at [0]: nan -> inf"
    )
    assert array_difference(np.array([np.nan, 1]), np.array([np.inf, 2])) == said


@pytest.mark.parametrize("dtype", ["bool", "complex64"])
def test_arrays_of_any_type(dtype):
    one, other = np.zeros(3, dtype), np.array([0, 1, 0], dtype)
    assert "1 of 3 differ, by at most 1, the first at [1]" in array_difference(one, other)


# --- models ----------------------------------------------------------------------------------------


def test_equal_models_do_not_differ(tmp_path):
    assert models(tmp_path, linear(), linear()) == "None"


@pytest.mark.parametrize("external", ["auto", "always"])
def test_an_initializer_is_named_with_its_elements(tmp_path, external):
    said = models(
        tmp_path, linear(400), changed_weight(linear(400)), external=external, limit_bytes=1 << 30
    )
    assert (tmp_path / "one/model.onnx.data").exists() == (external == "always")
    assert said.startswith(
        "model.onnx: initializer 'w': float32 [400, 3]: 2 of 1,200 differ, by at most 0.5, "
        "the first at [1, 2]: "
    )


def test_a_node_an_attribute_and_all_that_follows_are_counted(tmp_path):
    other = changed_weight(linear())
    other.graph.node[2].op_type = "Sigmoid"
    said = models(tmp_path, linear(), other)
    assert said.startswith("model.onnx: initializer 'w': ")  # the first node reads it
    assert said.endswith("(1 node and 1 initializer in all)")


def _with_attribute(name, value):
    made = linear()
    made.graph.node[2].attribute.append(helper.make_attribute(name, value))
    return made


def test_attributes_show_both_values(tmp_path):
    said = models(tmp_path, _with_attribute("alpha", 0.5), _with_attribute("alpha", 0.75))
    assert said == "model.onnx: node 2, Relu 'clip': attribute 'alpha': 0.5 -> 0.75"


def test_a_tensor_attribute_shows_its_element(tmp_path):
    one, other = (_with_attribute("value", weight("", np.array([n, 2]))) for n in (1, 9))
    said = models(tmp_path, one, other)
    assert said.endswith(
        "attribute 'value': int64 [2]: 1 of 2 differ, by at most 8, the first at [0]: 1 -> 9"
    )


def test_the_interface_and_the_opset(tmp_path):
    other = linear()
    other.graph.output[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    said = models(tmp_path, linear(), other)
    assert said == "model.onnx: output 'y': FLOAT, batchx3 -> DOUBLE, batchx3"
    newer = models(tmp_path / "opset", linear(), linear(opset=19))
    assert newer == (
        'model.onnx: opset_import: [domain: "" version: 18 ] -> [domain: "" version: 19 ]'
    )


def test_four_bit_weights_next_to_the_model(tmp_path):
    sides = []
    for name, number in (("one", 1), ("other", 5)):
        array = np.ones((64, 64), np.int8)
        array[2, 3] = number
        tensor = helper.make_tensor("w", TensorProto.INT4, array.shape, array.reshape(-1))
        made = linear()
        made.graph.initializer[0].CopyFrom(tensor)
        save_model(made, tmp_path / name, external="always")
        sides.append(tmp_path / name)
    said = str(first_difference(*sides))
    assert "initializer 'w': int4 [64, 64]: 1 of 4,096 differ, by at most 4, the first at" in said


# --- other files -----------------------------------------------------------------------------------


def test_arrays_in_a_file_are_named(tmp_path):
    for side, last in (("one", 1.0), ("other", 1.5)):
        (tmp_path / side).mkdir()
        np.savez(tmp_path / side / "p.npz", a=np.zeros(3), b=np.array([0, last]))
        np.save(tmp_path / side / "q.npy", np.array([last]))
    said = str(first_difference(tmp_path / "one", tmp_path / "other"))
    assert said == (
        "p.npz: array 'b': float64 [2]: 1 of 2 differ, by at most 0.5, the first at [1]: 1 -> 1.5 "
        "(1 of 2 arrays differ)"
    )
    for side in ("one", "other"):
        (tmp_path / side / "p.npz").unlink()
    said = str(first_difference(tmp_path / "one", tmp_path / "other"))
    assert said.startswith("q.npy: float64 [1]: 1 of 1 differ")


def test_text_by_line_and_bytes_by_offset(tmp_path):
    said = folders(tmp_path, b"a\nb\nc\n", b"a\nB\nc\n", "t.txt")
    assert said == "t.txt: line 2: 'b' -> 'B'"
    large = bytes(3 << 20)
    changed = bytearray(large)
    changed[2_500_000] = 0xFF
    said = folders(tmp_path / "b", large, bytes(changed), "t.bin")
    assert said == "t.bin: byte 2,500,000: 00 -> ff"
    said = folders(tmp_path / "c", b"\0\1", b"\0", "t.bin")
    assert said == "t.bin: byte 1: 01 -> its end, 2 -> 1 bytes long"


def test_files_that_only_one_has(tmp_path):
    assert folders(tmp_path, b"a", b"a", "x") == "None"
    (tmp_path / "other/new").write_bytes(b"")
    assert str(first_difference(tmp_path / "one", tmp_path / "other")) == "new: this file is new"
    assert str(first_difference(tmp_path / "other", tmp_path / "one")) == "new: this file is gone"


def test_a_model_comes_before_the_files_that_tell_of_it(tmp_path):
    save_model(linear(), tmp_path / "one")
    save_model(changed_weight(linear()), tmp_path / "other")
    for side in ("one", "other"):
        (tmp_path / side / "SHA256SUMS").write_text(side)
        (tmp_path / side / "manifest.json").write_text(json.dumps(side))
        (tmp_path / side / "a.txt").write_text(side)
    assert str(first_difference(tmp_path / "one", tmp_path / "other")).startswith("model.onnx: ")


def test_what_can_not_be_read_is_compared_by_byte(tmp_path):
    for name in ("r.json", "p.npz", "q.npy", "model.onnx"):
        said = folders(tmp_path / name, b"\x0f{not", b"\x0f{ not", name)
        assert "it can't be read as what its name says" in said
        assert "byte 2: 6e -> 20, 5 -> 6 bytes long" in said
