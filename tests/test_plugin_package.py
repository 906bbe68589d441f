"""A distribution that onnxbuild knows nothing of, built and installed; and a project's own plug-in."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.warm_commands import run as run_command_of

HERE = Path(__file__).parent
pytestmark = pytest.mark.slow

MODEL = """\
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def build():
    weights = np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "ready",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
        [numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
"""
RECIPE = """\
version: 1
name: demo
model: model.py:build
frontend: ready
dummy_inputs:
  x: {dtype: float32, shape: [batch, 8]}
dynamic_axes:
  batch: {min: 1, max: 4, example: 2}
outputs: [y]
quantization:
  fp32: none
  small: {mode: rounded, bits: 14}
packages: {zip: {}, variants: [small]}
size: {max_bytes: 100000}
providers: [cpu, {toaster: {browning: 3}}]
benchmark: {max_time_s: 0.1, min_samples: 3}
"""
OWN = '''\
"""A gate of this project's own."""

from dataclasses import dataclass

from limits import MOST

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.step import Finding, Outcome, StepKind
from onnxbuild.expansion.addresses import of_variant
from onnxbuild.expansion.feature import Feature
from onnxbuild.onnxkit.reports import write_report


@dataclass(frozen=True)
class Params:
    """Nothing to choose."""


def run(context):
    """Write report.json; too many files are a finding."""
    count = len(list(context.input("model").iterdir()))
    write_report(context.output("report"), {"passed": count <= MOST, "files": count})
    return Outcome({}, () if count <= MOST else (Finding(f"{count} files; at most {MOST}"),))


KIND = StepKind("own-count", 1, Params, ("model",), {"report": "report"}, (), run)


def reports(scope, subject):
    address = of_variant(scope.recipe, subject.variant, "count")
    step = scope.step(address, KIND, Params(), {"model": subject.model})
    return {"gate/count": OutputRef(step, "report")}


FEATURE = Feature(name="own-count", kinds=(KIND,), reports=reports)
'''


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plug-in as pip installs it, in a folder of its own."""
    source = tmp_path_factory.mktemp("source") / "plugin"
    shutil.copytree(HERE / "plugin_package", source)
    site = tmp_path_factory.mktemp("installed") / "site"
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", *offline, "--target", site, source],
        check=True,
        timeout=300,
    )
    return site


class Project:
    """A project, and the command line on it, with what is installed in `site`."""

    def __init__(self, root: Path, site: Path) -> None:
        self.root = root
        self.site = site
        (root / "model.py").write_text(MODEL)
        (root / "demo.yaml").write_text(RECIPE)
        (root / "pyproject.toml").write_text("")

    def run(self, *arguments: str) -> tuple[int, str]:
        """(exit code, all that was printed)."""
        environment = {**os.environ, "PYTHONPATH": str(self.site)}
        done = run_command_of(arguments, self.root, environment, timeout_s=300)
        return done.code, done.out + done.err

    def built(self) -> set[str]:
        """Build; the steps that ran."""
        code, text = self.run("run", "demo.yaml", "--json")
        assert code == 0, text
        found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        return {each["step"] for each in found if each["type"] == "step_finished"}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, installed: Path) -> tuple[Path, set[str]]:
    """A folder with a project that was built, and its site folder; the steps that ran."""
    folder = tmp_path_factory.mktemp("first")
    shutil.copytree(installed, folder / "site")
    (folder / "project").mkdir()
    ran = Project(folder / "project", folder / "site").built()
    shutil.copytree(folder, folder.with_name("built"), symlinks=True)
    return folder, ran


@pytest.fixture
def project(first: tuple[Path, set[str]]) -> Project:
    """That folder, as it was: whatever a test does not change is there already."""
    folder = first[0]
    shutil.rmtree(folder)
    shutil.copytree(folder.with_name("built"), folder, symlinks=True)
    return Project(folder / "project", folder / "site")


def test_a_distribution_brings_a_mode_a_package_a_gate_a_step_a_frontend_and_a_provider(
    project, first
):
    steps = {"demo:take", "demo:small/round", "demo:small-zip/package", "demo:small/size"}
    assert steps <= first[1]
    project.built()
    out = project.root / "artifacts" / "out" / "demo"
    with zipfile.ZipFile(out / "small-zip" / "bundle.zip") as archive:
        assert "model.onnx" in archive.namelist()
    assert json.loads((out / "small" / "gates.json").read_text())["size"]["passed"] is True
    manifest = json.loads((out / "small" / "manifest.json").read_text())
    assert manifest["precision"] == "rounded"
    assert "gates.json" in manifest["files"]
    code, text = project.run("run", "demo.yaml")
    assert "up to date" in text
    heading, *rows = (line for line in text.splitlines() if line.split()[0] in {"recipe", "demo"})
    assert heading.split()[-2:] == ["checked", "size"]
    assert [(row.split()[1], row.endswith("KiB")) for row in rows] == [
        ("fp32", True), ("small", True), ("small-zip", False),
    ]  # fmt: skip

    code, text = project.run("doctor")
    assert code == 0, text
    assert "plug-in      onnxbuild-example 0.1: mode rounded, format zip, feature size" in text
    assert '"rounded"' in project.run("schema")[1]
    assert '"rounded"' not in project.run("schema", "--built-in")[1]

    module = project.site / "onnxbuild_example" / "rounded.py"  # an edit where it is installed
    module.write_text(module.read_text().replace("1 << drop >> 1", "0"))
    again = project.built()
    assert "demo:small/round" in again
    assert "demo:optimize" not in again  # no step of the plug-in's, and equal inputs

    (project.root / "demo.yaml").write_text(RECIPE.replace("rounded", "truncate"))
    code, text = project.run("lint", "demo.yaml")
    assert (code, "rounded" in text) == (2, True)
    (project.root / "demo.yaml").write_text(RECIPE)
    shutil.rmtree(project.site / "onnxbuild_example-0.1.dist-info")  # as `pip uninstall` does
    shutil.rmtree(project.site / "onnxbuild_example")
    code, text = project.run("run", "demo.yaml")
    assert code == 2
    assert "frontend is 'ready'" in text


def test_a_release_shows_a_gates_report_and_verifies_with_the_plug_in_and_without(project):
    for arguments in (
        ("lock", "demo.yaml"),
        ("release", "demo.yaml", "--version", "1.0", "--allow-dirty"),
    ):
        code, text = project.run(*arguments)
        assert code == 0, text
    reports = project.root / "dist" / "demo-1.0" / "reports"
    assert json.loads((reports / "small" / "size.json").read_text())["max_bytes"] == 100_000
    code, text = project.run("verify", "dist/demo-1.0", "--run", "--provider", "toaster")
    assert code == 1, text
    assert "'toaster'" in text  # known, and not in this ONNX Runtime
    shutil.rmtree(project.site / "onnxbuild_example-0.1.dist-info")
    shutil.rmtree(project.site / "onnxbuild_example")
    code, text = project.run("verify", "dist/demo-1.0", "--run")
    assert code == 0, text
    code, text = project.run("verify", "dist/demo-1.0", "--run", "--provider", "toaster")
    assert code == 2, text
    assert "there is no provider 'toaster'" in text
    report = reports / "small" / "size.json"
    report.write_text(report.read_text().replace("100000", "900000"))
    assert project.run("verify", "dist/demo-1.0")[0] == 4


def test_a_plugin_that_breaks_stops_recipes_and_nothing_else(project):
    (project.site / "onnxbuild_example" / "size.py").write_text("raise OSError('no scales')\n")
    where = project.site / "onnxbuild_example" / "size.py"
    for verb in ("run", "plan", "lint"):
        code, text = project.run(verb, "demo.yaml")
        assert code == 2
        assert f"onnxbuild-example 0.1 ({where}:1): the plug-in raises OSError" in text
        assert "fix: mend it, or remove it: pip uninstall onnxbuild-example" in text
    assert project.run("--help")[0] == 0
    assert "plug-in" not in project.run("cache", "stats")[1]
    code, text = project.run("schema")
    assert code == 0
    assert "note: a plug-in is left out: onnxbuild-example 0.1" in text
    code, text = project.run("doctor")
    assert code == 1
    assert "problem: a plug-in is faulty: onnxbuild-example 0.1" in text


def test_a_step_of_a_distribution_that_raises_is_named_with_its_line(project):
    module = project.site / "onnxbuild_example" / "size.py"
    text = module.read_text().replace("    found =", "    raise KeyError('scales')\n    found =")
    module.write_text(text)
    line = text.splitlines().index("    raise KeyError('scales')") + 1
    code, text = project.run("run", "demo.yaml", "--only", "fp32/size")
    assert code == 1
    where = f"onnxbuild-example 0.1 ({module}:{line})"
    assert "`run` of the plug-in raises KeyError: 'scales'" in text
    assert where in text


def test_a_step_that_lies_about_what_it_makes_is_named(project):
    what = "the step kind 'own-count' declares the outputs report; run() wrote other"
    false_claims = {
        "return Outcome(": "return tuple(",
        'context.output("report")': 'context.output("other")',
    }
    own(project)
    file = project.root / "tools" / "own.py"
    claim = next(each for each in false_claims if each in 'context.output("report"), {"passed"')
    file.write_text(
        file.read_text().replace(claim, false_claims[claim]).replace("tuple({}, ", "tuple((), *")
    )
    code, text = project.run("run", "demo.yaml", "--only", "fp32/count")
    assert code == 1, text
    assert what in text
    assert "tools/own.py" in text


@pytest.mark.parametrize(
    ("returned", "what"),
    [
        ("Outcome({}, Finding('a', 'b'))", "the findings Finding(what='a'"),
        ("Outcome(notes='hello')", "the notes 'hello'; expected a tuple of str"),
        ("Outcome({'mean': float('nan')})", "the metric 'mean' with nan, which JSON can't hold"),
    ],
)
def test_a_result_that_can_not_be_kept_is_the_plugins_fault(project, returned, what):
    own(project)
    file = project.root / "tools" / "own.py"
    head, _, tail = file.read_text().partition("    return Outcome(")
    file.write_text(f"{head}    return {returned}\n{tail.partition(chr(10))[2]}")
    code, text = project.run("run", "demo.yaml", "--only", "fp32/count")
    assert code == 1, text
    assert f"the step kind 'own-count' returned {what}" in text
    assert "tools/own.py" in text
    assert "fix: write " in text


def own(project: Project) -> None:
    """Give the project a plug-in of its own."""
    (project.root / "tools").mkdir()
    (project.root / "tools" / "own.py").write_text(OWN)
    (project.root / "tools" / "limits.py").write_text("MOST = 3\n")
    table = '[tool.onnxbuild]\nplugins = ["tools/own.py"]\n'
    (project.root / "pyproject.toml").write_text(table)


def test_a_projects_own_step_is_keyed_by_what_it_imports_and_runs_in_the_fence(project):
    own(project)
    assert {"demo:fp32/count", "demo:small/count"} <= project.built()
    assert "up to date" in project.run("run", "demo.yaml")[1]

    limits = project.root / "tools" / "limits.py"
    limits.write_text("MOST = 4\n")
    again = project.built()
    assert {"demo:fp32/count", "demo:small/count"} == {
        each for each in again if not each.endswith("package")
    }
    limits.write_text("MOST = 0\n")
    code, text = project.run("run", "demo.yaml")
    assert (code, "1 files; at most 0" in text) == (3, True)
    limits.write_text("MOST = 4\n")

    (project.root / "secret.txt").write_text("not declared")
    file = project.root / "tools" / "own.py"
    file.write_text(OWN.replace("    count =", '    open("secret.txt").read()\n    count ='))
    code, text = project.run("run", "demo.yaml")
    assert code == 5
    assert "secret.txt" in text

    file.write_text(OWN.replace("    count =", "    raise ValueError('no count')\n    count ="))
    code, text = project.run("run", "demo.yaml")
    assert code == 1
    line = OWN.splitlines().index('    count = len(list(context.input("model").iterdir()))') + 1
    assert "ValueError: no count" in text
    assert f"tools/own.py:{line}" in text

    (project.root / "pyproject.toml").write_text("")  # taken out
    code, text = project.run("run", "demo.yaml")
    assert code == 0
    assert "count" not in text


def test_a_build_with_plugins_is_the_same_in_a_copy_of_the_project(project):
    own(project)
    subprocess.run(["git", "init", "-q", project.root], check=True)
    code, text = project.run("reproduce", "demo.yaml")
    assert code == 0, text
    code, text = project.run("lock", "demo.yaml")
    assert code == 0, text
    lock = (project.root / "demo.lock").read_text()
    assert "onnxbuild-example 0.1" in lock
    code, text = project.run("run", "demo.yaml", "--locked")
    assert code == 0, text
    (project.root / "tools" / "limits.py").write_text("MOST = 5\n")
    code, text = project.run("run", "demo.yaml", "--locked")
    assert code == 4
    assert "tools/limits.py" in text
