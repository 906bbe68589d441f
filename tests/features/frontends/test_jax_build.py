"""Functions of JAX, converted and run in an environment of its own."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from onnxbuild.onnxkit.converters.frameworks import JAX
from tests.framework_environments import interpreter_of, onnxbuild

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> str:
    listed = JAX.environment
    return interpreter_of(listed, tmp_path_factory.mktemp("list"))


@pytest.fixture
def project(tmp_path) -> Path:
    """The recipe of a perceptron, in a project of its own."""
    for name in ("digits_jax.yaml", "models/digits_jax.py", "weights/digits_jax.npz"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "recipes" / name, tmp_path / name)
    (tmp_path / "pyproject.toml").write_text("")
    text = (tmp_path / "digits_jax.yaml").read_text()
    (tmp_path / "digits_jax.yaml").write_text(
        text[: text.index("calibration:")] + "quantization: {fp32: none}\n"
    )
    return tmp_path


def test_a_perceptron_is_built_and_built_again_if_its_code_changes(python, project):
    done = onnxbuild(project, "run", "digits_jax.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    out = project / "artifacts/out/digits_jax/fp32"
    manifest = json.loads((out / "manifest.json").read_text())
    assert [each["name"] for each in manifest["outputs"]] == ["logits"]
    report = json.loads((out / "benchmark.json").read_text())
    assert report["baseline"]["title"] == "JAX"
    assert set(report["points"][0]["results"]) == {"jax", "fp32"}
    assert report["models"]["jax"]["first_inference_ms"] > 0
    assert "vs JAX" in done.stdout
    again = onnxbuild(project, "run", "digits_jax.yaml")
    assert "nothing to do" in again.stdout + again.stderr
    model = project / "models/digits_jax.py"
    model.write_text(model.read_text().replace("approximate=False", "approximate=True"))
    planned = onnxbuild(project, "plan", "digits_jax.yaml").stdout
    assert "run     digits_jax:convert  (file models/digits_jax.py: " in planned
    assert "run     digits_jax:reference  (file models/digits_jax.py: " in planned


def test_what_a_callable_returns_is_held_to_what_the_recipe_says(python, tmp_path):
    script = Path(__file__).with_name("jax_cases.py")
    done = subprocess.run(
        [python, "-B", script, ROOT], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    said = json.loads(done.stdout)
    assert said["good"] == {"output_0": [4.0], "output_1": [1.0]}
    assert said["chosen"] == {"output_1": [1.0]}
    assert said["renamed"] == {"one": [4.0], "two": [1.0]}
    assert said["by_name"] == {"sum": [3.0], "x": [1.0]}
    refused = {name: each for name, each in said.items() if isinstance(each, list)}
    assert {name: what for name, (what, _, _) in refused.items()} == {
        "other": "cases.py:other returned a dict; expected a function, or (function, params)",
        "raises": "cases.py:raises raised ZeroDivisionError: division by zero",
        "without_params": "cases.py:without_params returned a function of (params, x); it is called with (x)",
        "fails": refused["fails"][0],
        "returns_text": "output 'output_0' of cases.py:returns_text is a str; outputs are arrays",
        "unknown": "the function of cases.py:unknown has no output 'sun'; it has sum, x",
        "wide": "input 'x' is int64, which JAX computes as int32",
        "sized": "cases.py:sized has no parameter 'widht'",
        "sum": "the size 'a + b' of input 'x' is a sum; jax2onnx takes axes alone",
    }
    assert refused["fails"][0].startswith(
        "the function of cases.py:fails fails on x [2, 4]: TypeError"
    )
    assert refused["fails"][2] == "cases.py:4"
    assert refused["raises"][2] == "cases.py:11"
    assert refused["sized"][1] == "write `width` in place of `widht` in its `args`"
    assert all(fix for _, fix, _ in refused.values())
