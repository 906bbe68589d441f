"""What is refused of a package."""

import json
import shutil

import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.write import write_sums
from onnxbuild.onnxkit.packages.golden import GOLDEN, write_plain_points
from onnxbuild.onnxkit.packages.package_run import NamedRunParams, checked_named_package
from tests.fakes.step_context import FolderContext
from tests.native.packages import write_reference

TYPES = ["float32", "string"]


@pytest.fixture
def package(tmp_path):
    write_reference(tmp_path / "reference", TYPES)
    folder = tmp_path / "package"
    write_plain_points(folder / GOLDEN, tmp_path / "reference", VariantTolerances())
    (folder / "manifest.json").write_text(json.dumps({"name": "demo", "variant": "int8"}))
    (folder / "model.onnx").write_bytes(b"weights")
    write_sums(folder)
    return folder


def list_again(package):
    (package / "SHA256SUMS").unlink()
    write_sums(package)


def check(package, scratch="scratch", recipe="demo"):
    params = NamedRunParams("it", VariantTolerances(), recipe, "int8")
    inputs = {"package": package, "reference": package.parent / "reference"}
    context = FolderContext(params, package.parent / scratch, inputs)
    return checked_named_package(context, "manifest.json")[1]


def test_a_whole_package_names_its_golden_points(package):
    assert check(package) == {"example", "fewest"}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (
            lambda folder: (folder / "model.onnx").write_bytes(b"weight"),
            "model.onnx is another file",
        ),
        (lambda folder: (folder / "SHA256SUMS").unlink(), "SHA256SUMS can't be read"),
    ],
    ids=["truncated", "no sums"],
)
def test_another_file_than_listed_is_refused(package, change, what):
    change(package)
    with pytest.raises(StepError, match=what):
        check(package)


def test_a_package_of_another_variant_is_refused_though_it_is_whole(package):
    with pytest.raises(StepError, match="a package of demo:int8, not of other:int8"):
        check(package, recipe="other")


def test_golden_points_of_another_reference_are_refused_though_all_is_listed(package):
    (package / GOLDEN / "00/output-0.bin").write_bytes(bytes(24))
    list_again(package)
    with pytest.raises(StepError, match=r"golden/00/output-0\.bin is not the reference's"):
        check(package)
    shutil.rmtree(package / GOLDEN / "01")
    list_again(package)
    with pytest.raises(StepError, match="golden/"):
        check(package, "scratch2")
