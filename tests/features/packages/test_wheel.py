import json
import shutil
import subprocess
import sys

import onnx
import pytest
from onnx import numpy_helper

from onnxbuild.features.packages.wheel import FEATURE, RunWheelParams
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.write import write_sums
from onnxbuild.onnxkit.wheels.archive import unpack_wheel, write_wheel
from tests.cli.conftest import project  # noqa: F401 - a fixture
from tests.fakes.step_context import run_step
from tests.features.packages.test_every_format import RECIPE
from tests.written_recipes import faults, loader


def test_variants_whose_wheels_would_replace_each_other_are_refused(tmp_path):
    first = "int8"
    second = "int8_"
    package = "demo_int8"
    written = RECIPE.replace(
        "{fp32: none, int8: dynamic}", f"{{{first}: dynamic, {second}: none}}"
    )
    load = loader(tmp_path, before=written)
    ((said, where, mend),) = faults(load, "packages: {wheel: {}}\n")
    assert said == (
        f"the wheels of '{first}' and '{second}' would replace each other: both are imported as '{package}'"
    )
    assert where == "demo.yaml:7:12"
    assert mend == "rename one of them"
    load(f"packages: {{variants: [{first}], wheel: {{}}}}\n")


@pytest.mark.slow
def test_a_wheel_is_installed_by_pip_and_tests_itself_and_another_model_is_refused(
    tmp_path,
    project,  # noqa: F811
):
    project.edit("tiny.yaml", "benchmark:", "packages: {wheel: {version: '1.0'}}\nbenchmark:")
    done = project.run("--only", "fp32-wheel")
    assert done.code == 0, done.out + done.err
    out = project.folder / "artifacts/out/tiny/fp32-wheel"
    assert json.loads((out / "run.json").read_text())["passed"] is True
    wheel, site = out / "tiny_fp32-1.0-py3-none-any.whl", tmp_path / "site"
    offline = ["--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", *offline, "--target", site, wheel],
        check=True,
        timeout=300,
    )
    code = (
        "import tiny_fp32, numpy; x = numpy.ones((3, 4), 'float32'); "
        "print(tiny_fp32.load().run(None, {'input': x})[0].shape, tiny_fp32.__version__)"
    )
    assert python(site, "-c", code).stdout == "(3, 2) 1.0\n"
    own = python(site, "-m", "tiny_fp32")
    assert (own.returncode, own.stdout.splitlines()[0]) == (0, "runs on CPUExecutionProvider")
    there_is_none = python(site, "-m", "tiny_fp32", "cuda")
    assert (there_is_none.returncode, "no target 'cuda'" in there_is_none.stderr) == (3, True)

    golden = shutil.copytree(site / "tiny_fp32/golden", tmp_path / "golden")
    outcome = judged(wheel, golden, tmp_path / "good")
    assert (outcome.findings, outcome.metrics["points_passed"]) == ((), 4)
    with_another_model(wheel, tmp_path / "other" / wheel.name)
    outcome = judged(tmp_path / "other" / wheel.name, golden, tmp_path / "bad")
    assert "elements differ by more than" in outcome.findings[0].what
    assert outcome.findings[0].where.startswith("the wheel, output 'logits'")


def judged(wheel, golden, folder):
    """What the step says of a wheel."""
    (folder / "package").mkdir(parents=True)
    shutil.copy(wheel, folder / "package")
    write_sums(folder / "package")
    params = RunWheelParams("the wheel", VariantTolerances(atol=1e-5, rtol=1e-4), "tiny_fp32")
    inputs = {"package": folder / "package", "reference": golden}
    return run_step(FEATURE.run, params, folder / "step", inputs)[0]


def with_another_model(wheel, path):
    """Write the wheel with other weights, its RECORD as it should be."""
    folder = path.parent / "unpacked"
    unpack_wheel(wheel, folder)
    model = onnx.load(folder / "tiny_fp32/model.onnx")
    for each in model.graph.initializer:
        if each.data_type == onnx.TensorProto.FLOAT:
            weights = numpy_helper.to_array(each)
            each.CopyFrom(numpy_helper.from_array(weights * 1.5, each.name))
    onnx.save(model, folder / "tiny_fp32/model.onnx")
    files = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    info = "tiny_fp32-1.0.dist-info"
    write_wheel(path, info, {n: p for n, p in files.items() if n != f"{info}/RECORD"})


def python(site, *arguments):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=site.parent,
        env={"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
