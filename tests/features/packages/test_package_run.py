"""Steps that run a package: what is refused, what is skipped, and what fails because the CPU is always here."""

import json
import shutil
from importlib import resources

import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.features.packages import oci, wheel
from onnxbuild.onnxkit import web
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import BundleTarget, ManifestProvider
from onnxbuild.onnxkit.bundles.write import names_below, write_sums
from onnxbuild.onnxkit.loaders.script import load_script
from onnxbuild.onnxkit.oci.layout import ArtifactText, write_layout
from onnxbuild.onnxkit.packages.golden import GOLDEN, write_plain_points
from onnxbuild.onnxkit.packages.package_run import (
    NamedRunParams,
    RunParams,
    checked_named_package,
    run_own_test,
)
from onnxbuild.onnxkit.packages.typescript import shared_javascript
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.onnxkit.wheels.archive import unpack_wheel, write_wheel
from onnxbuild.onnxkit.wheels.content import WheelNames
from tests.fakes.step_context import FolderContext, run_step
from tests.native.packages import write_bundle, write_reference

DTYPES = ("float32",)
TOLERANCES = VariantTolerances(atol=1e-3, rtol=1e-3)
CUDA = ManifestProvider("CUDAExecutionProvider", {}, "cuda")
ON_CUDA = {
    "targets": {"cuda": BundleTarget((CUDA,), SessionSettings())}, "providers": (CUDA,),
}  # fmt: skip
INFO = "demo-1.0.dist-info"


def bundle_of(folder, **changes):
    bundle = write_bundle(folder / "bundle", DTYPES, **changes)
    (bundle / "load.py").write_text(load_script("onnxruntime"))
    return bundle, write_reference(folder / "reference", DTYPES)


def wheel_of(folder, **changes):
    """(folder of a wheel, reference)."""
    bundle, reference = bundle_of(folder, **changes)
    params = wheel.PackageWheelParams(
        WheelNames("demo", "demo", "1.0", "a model"), "none", TOLERANCES
    )
    inputs = {"bundle": bundle, "reference": reference}
    _, context = run_step(wheel.FEATURE.kind, params, folder / "package", inputs)
    return context.output("bundle"), reference


def resum(package):
    """Write SHA256SUMS anew, as whoever changes a package's files would."""
    (package / "SHA256SUMS").unlink(missing_ok=True)
    write_sums(package)


def skipping(wheel):
    """Rewrite a wheel so that its own test says that no provider is here."""
    rewrite(wheel, "raise SystemExit(3)\n")


def rewrite(wheel, program):
    """Rewrite a wheel so that a program is its own test."""
    files = wheel.parent.parent / "unpacked"
    unpack_wheel(wheel, files)
    (files / "demo/__main__.py").write_text(program)
    (files / INFO / "RECORD").unlink()
    write_wheel(wheel, INFO, {name: files / name for name in names_below(files)})
    resum(wheel.parent)


def run_wheel_of(package, reference, folder):
    params = wheel.RunWheelParams("the wheel", TOLERANCES, "demo")
    inputs = {"package": package, "reference": reference}
    return run_step(wheel.FEATURE.run, params, folder / "run", inputs)[0]


def test_a_wheel_whose_test_always_skips_fails_where_it_may_run_on_the_cpu(tmp_path):
    package, reference = wheel_of(tmp_path / "cpu")
    skipping(next(package.glob("*.whl")))
    with pytest.raises(StepError) as caught:
        run_wheel_of(package, reference, tmp_path)
    assert caught.value.what == (
        "`python -m demo` ends with 3, as if no provider of the wheel were here; the CPU is: it prints nothing"
    )


def test_a_wheel_whose_test_dies_says_why(tmp_path):
    # what it wrote before is no result: points were missing, and reading them hid the reason
    package, reference = wheel_of(tmp_path / "dies")
    died = """import pathlib, sys
folder = pathlib.Path(sys.argv[-1])
folder.mkdir()
(folder / "example.npz").write_bytes(b"half")
raise RuntimeError("the model needs more memory")
"""
    rewrite(next(package.glob("*.whl")), died)
    with pytest.raises(StepError) as caught:
        run_wheel_of(package, reference, tmp_path)
    said = "RuntimeError: the model needs more memory"
    assert caught.value.what == f"`python -m demo` ends with 1: {said}"


def test_a_wheel_whose_manifest_can_not_be_read_is_no_reason_to_skip(tmp_path):
    package, reference = wheel_of(tmp_path / "cpu")
    wheel = next(package.glob("*.whl"))
    skipping(wheel)
    files = shutil.copytree(wheel.parent.parent / "unpacked", tmp_path / "files")
    (files / "demo/manifest.json").write_text("{}")
    write_wheel(wheel, INFO, {name: files / name for name in names_below(files)})
    resum(wheel.parent)
    with pytest.raises(StepError, match=r"manifest.json of the package can't be read"):
        run_wheel_of(package, reference, tmp_path)


def test_an_artifact_whose_loader_says_that_nothing_is_here_fails_where_it_may_run_on_the_cpu(
    tmp_path,
):
    for name, changes in (("cpu", {}), ("cuda", ON_CUDA)):
        bundle, reference = bundle_of(tmp_path / name, **changes)
        with (bundle / "load.py").open("a") as loader:
            loader.write("\n\ndef load(target=''):\n    raise LoadError('gone')\n")
        package = tmp_path / name / "package"
        package.mkdir()
        files = {each: bundle / each for each in names_below(bundle)}
        write_layout(package, files, ArtifactText("demo:fp32", {}, {}, "fp32"))
        resum(package)
        params = RunParams("the artifact", TOLERANCES)
        inputs = {"package": package, "reference": reference}
        if name == "cpu":
            with pytest.raises(StepError, match="of the artifact were here; the CPU is: gone"):
                run_step(oci.FEATURE.run, params, tmp_path / name / "step", inputs)
            continue
        outcome, context = run_step(oci.FEATURE.run, params, tmp_path / name / "step", inputs)
        assert outcome.notes == ("the artifact was not run: gone",)
        report = json.loads((context.output("report") / "report.json").read_text())
        assert report == {"skipped": "gone"}


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


MODEL = """
export const toHalf = null;
export const load = async () => ({ run: async () => { throw new Error("no memory for a buffer\\nat 0x1"); } });
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_a_model_that_loads_and_fails_at_a_point_says_where_and_why(tmp_path):
    # Node ends what it says of an exception with its own version
    package = tmp_path / "package"
    (package / "golden").mkdir(parents=True)
    static = resources.files(web).joinpath("static")
    for name in ("test.mjs", "golden.js"):
        (package / name).write_text(static.joinpath(name).read_text(encoding="utf-8"))
    for name in ("tensors.js", "judge.js"):
        (package / name).write_text(shared_javascript(name))
    (package / "package.json").write_text('{"type": "module"}')
    (package / "model.js").write_text(MODEL)
    points = [{"name": "min", "inputs": [], "outputs": []}]
    (package / "golden/points.json").write_text(json.dumps(points))
    command = ["node", package / "test.mjs", "--outputs", tmp_path]
    test = run_own_test(command, tmp_path, tmp_path)
    assert test.code == 1
    assert test.said == "min: the model can't be run: no memory for a buffer"
    assert not test.is_complete
