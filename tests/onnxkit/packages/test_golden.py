"""Golden points for programs that can't read NumPy's files."""

import json

import numpy as np
import pytest

from onnxbuild.onnxkit.accuracy.tolerances import Tolerance, VariantTolerances, bounds_of
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from onnxbuild.onnxkit.packages.golden import (
    read_plain_outputs,
    read_plain_tolerances,
    write_plain_points,
)
from onnxbuild.onnxkit.packages.package_run import verdict_on

ARRAYS = {
    "f": np.array([[1.5, -0.0], [np.inf, 1e-40]], np.float32),
    "h": np.array([0.1, 2.0], np.float16),
    "i": np.array([2**63 - 1, -5]),
    "b": np.array([[True], [False]]),
    "s": np.array(["é\n", "中", ""]),
    "big": np.array([1, 2], ">i4"),
    "none": np.zeros((0, 3), np.float32),
    "scalar": np.array(3.5),
    "columns": np.asfortranarray(np.arange(6, dtype=np.int8).reshape(2, 3)),
}


@pytest.fixture
def reference(tmp_path):
    folder = tmp_path / "reference"
    folder.mkdir()
    writer = ReferenceWriter(folder)
    flags = np.array([False, True])
    writer.add(ReferencePoint("example", {"n": 2}, {"x": ARRAYS["f"]}, ARRAYS))
    writer.add(
        ReferencePoint("min", {}, {"x": ARRAYS["f"]}, {"f": np.nan_to_num(ARRAYS["f"])}, flags)
    )
    writer.finish()
    return folder


def test_arrays_come_back_as_they_were(tmp_path, reference):
    listed = write_plain_points(tmp_path / "golden", reference, VariantTolerances())
    assert json.loads((tmp_path / "golden/points.json").read_text()) == listed
    found = read_plain_outputs(tmp_path / "golden")
    assert list(found) == ["example", "min"]
    for name, array in ARRAYS.items():
        assert found["example"][name].shape == array.shape
        assert found["example"][name].dtype.kind == array.dtype.kind
        np.testing.assert_array_equal(found["example"][name], array)
    assert listed[1]["skipped_rows"] == [1]
    assert "skipped_rows" not in listed[0]
    assert listed[0]["outputs"][0]["bounds"].keys() >= {"atol", "rtol", "equal_min"}
    assert (tmp_path / "golden/00/output-0.bin").read_bytes()[:4] == b"\0\0\xc0\x3f"


def test_inputs_have_the_types_that_the_model_takes_and_others_are_left_out(tmp_path, reference):
    dtypes = {"x": "float16", "more": "int64"}
    listed = write_plain_points(tmp_path / "golden", reference, VariantTolerances(), dtypes=dtypes)
    assert [(each["name"], each["dtype"]) for each in listed[0]["inputs"]] == [("x", "float16")]
    assert len((tmp_path / "golden/00/input-0.bin").read_bytes()) == 8
    (none,) = {len(each["inputs"]) for each in write_plain_points(
        tmp_path / "none", reference, VariantTolerances(), dtypes={})}  # fmt: skip
    assert none == 0


def test_bounds_come_back_as_they_were(tmp_path, reference):
    given = VariantTolerances(
        atol=0.5, cosine_min=0.9, equal_min=0.75, outputs={"i": Tolerance(atol=2, equal_min=0.5)}
    )
    write_plain_points(tmp_path / "golden", reference, given)
    found = read_plain_tolerances(tmp_path / "golden")
    assert found.outputs.keys() == ARRAYS.keys()
    for name in ("f", "h", "scalar"):
        said = bounds_of(given, name)
        assert found.outputs[name] == Tolerance(said.atol, said.rtol, said.cosine_min)
    assert found.outputs["i"] == Tolerance(atol=2, equal_min=0.5)
    assert found.outputs["b"] == found.outputs["s"] == Tolerance(equal_min=0.75)
    (tmp_path / "golden/points.json").write_text('[{"outputs": [{"name": "f"}]}]')
    with pytest.raises(ValueError, match="lacks"):
        read_plain_tolerances(tmp_path / "golden")


def test_what_is_no_such_folder_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_plain_outputs(tmp_path)
    (tmp_path / "points.json").write_text('[{"name": "a"}]')
    with pytest.raises(ValueError, match="outputs"):
        read_plain_outputs(tmp_path)
    about = {"name": "y", "dtype": "float32", "shape": [2], "file": "y.bin"}
    (tmp_path / "points.json").write_text(json.dumps([{"name": "a", "outputs": [about]}]))
    (tmp_path / "y.bin").write_bytes(b"\0" * 4)
    with pytest.raises(ValueError, match="reshape"):
        read_plain_outputs(tmp_path)


def test_the_verdict_names_an_output_that_is_off_or_missing(reference):
    def judged(found):
        return verdict_on(
            found,
            reference,
            VariantTolerances(atol=1e-3),
            subject="it",
            fix="mend it",
            where="demo:run",
        )

    report, findings = judged({"min": {"f": np.nan_to_num(ARRAYS["f"])}})
    assert report["passed"]
    assert not findings
    report, findings = judged({"min": {"f": np.nan_to_num(ARRAYS["f"]) + 1}})
    assert not report["passed"]
    assert "output 'f'" in findings[0].where
    _, findings = judged({"min": {}})
    assert "it is not there" in findings[0].what
