import numpy as np
import pytest

from onnxbuild.onnxkit.data.reference_files import ConstantOutputs, ReferencePoint, ReferenceWriter


def notes(*arrays):
    found = ConstantOutputs()
    for array in arrays:
        found.add({"y": np.asarray(array)})
    return found.notes()


@pytest.mark.parametrize(
    ("arrays", "value"),
    [
        ([np.zeros((1, 4)), np.zeros((8, 4))], "0"),
        ([np.zeros((0, 4)), np.full((2, 4), 0.5)], "0.5"),
    ],
)
def test_an_output_with_one_value_everywhere_is_named(arrays, value):
    (note,) = notes(*arrays)
    assert note.startswith(f"output 'y' is {value} in every element at every point: ")
    assert "`reference: {samples: FILE.py:CALLABLE}`" in note


@pytest.mark.parametrize(
    "arrays",
    [
        [np.zeros((1, 4)), np.array([[0, 0, 0, 1e-9]])],
        [np.float32(14.3), np.float32(14.3)],
        [np.zeros((0, 4))],
    ],
)
def test_others_are_not(arrays):
    assert notes(*arrays) == ()


def test_a_reference_names_those_of_all_its_points(tmp_path):
    writer = ReferenceWriter(tmp_path)
    for name in ("a", "b"):
        outputs = {"dead": np.zeros((2, 4)), "alive": np.arange(4.0)}
        writer.add(ReferencePoint(name, {}, {"x": np.ones(1)}, outputs))
    (note,) = writer.notes()
    assert "'dead'" in note
