"""`onnxbuild diff` where a gate fails: what it cost is said all the same, from reports and the model that was judged."""

import re
import shutil

import pytest

from tests.cli.conftest import Project
from tests.cli.test_diff import git, lines_of
from tests.plugins.test_page import block

MODEL = """\
import torch


def load(scale=1.0):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    with torch.no_grad():
        model[2].weight[1, 3] *= scale
    return model
"""
RECIPE = """\
version: 1
name: tiny
model: {entrypoint: models/tiny.py:load}
dummy_inputs:
  input: {dtype: float32, shape: [batch, 4]}
outputs: [logits]
dynamic_axes:
  batch: {min: 1, max: 8, example: 2}
quantization: {fp32: none, int8: {mode: dynamic, validate: {cosine_min: 0.999}}}
export: {exporter: torchscript}
benchmark: {max_time_s: 0.1, min_samples: 3}
"""


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    """Two commits: in the second the gate of int8 fails, so the lock is still that of the first."""
    project = Project(tmp_path_factory.mktemp("failing") / "project")
    project.write("pyproject.toml", "")
    project.write(".gitignore", "artifacts/\n__pycache__/\n")
    project.write("models/tiny.py", MODEL)
    project.write("tiny.yaml", RECIPE)
    git(project, "init", "-q")
    assert project("lock", "tiny.yaml").code == 0
    git(project, "add", "-A")
    git(project, "commit", "-qm", "good")
    git(project, "tag", "good")
    project.edit("models/tiny.py", "scale=1.0", "scale=400.0")
    built = project("run", "tiny.yaml", "--keep-going")  # fp32, too, however fast int8 fails
    assert built.code == 3
    assert project("lock", "tiny.yaml").code == 3
    git(project, "commit", "-qam", "bad")
    git(project, "tag", "bad")
    return project


def masked(lines):
    """Without the digits that a processor decides."""
    return [re.sub(r"-?\d+(\.\d+)?(e[+-]\d+)?", "#", line) for line in lines]


@pytest.mark.slow
def test_what_a_commit_cost_though_a_gate_fails_now(failing):
    seen = failing("diff", "good", "tiny.yaml")
    (verdict,) = lines_of(seen, "verdicts")
    assert verdict.startswith("int8: fails now: int8/validate: cosine 0.99")
    assert masked(lines_of(seen, "accuracy")) == [
        "int#: largest error on cpu: # -> # (+#)",
        "int#: least cosine on cpu: # -> # (#)",
    ]
    assert len(lines_of(seen, "inputs")) == 1
    weights = lines_of(seen, "weights")
    assert weights[0].startswith("fp32: weight '2.weight' of Gemm ")
    assert any(line.startswith("int8: weight '2.weight_quantized' of ") for line in weights)


@pytest.mark.slow
def test_the_way_back(failing):
    seen = failing("diff", "bad", "good", "tiny:int8")
    (verdict,) = lines_of(seen, "verdicts")
    assert verdict.startswith("no longer fails: int8/validate: cosine 0.99")
    assert any(
        line.startswith("weight '2.weight_quantized' of ") for line in lines_of(seen, "weights")
    )
    assert failing("diff", "bad", "tiny.yaml").out.endswith("\nno difference\n")
    page = failing.folder / "page.html"
    assert failing("diff", "good", "bad", "tiny.yaml", "--html", "page.html").code == 1
    assert "fails now: int8/validate: cosine 0.99" in page.read_text()
    page.unlink()


@pytest.mark.slow
def test_the_gate_of_a_plugin_and_its_figures(failing, tmp_path):
    copy = Project(tmp_path / "copy")
    shutil.copytree(failing.folder, copy.folder, symlinks=True)
    git(copy, "checkout", "-q", "good")
    copy.write("tools/max_size.py", block("python"))
    copy.write("pyproject.toml", block("toml"))
    copy.write("tiny.yaml", f"{RECIPE}max_size: {{bytes: 100000}}\n")
    assert copy("run", "tiny.yaml", "--only", "fp32").code == 0
    shutil.copytree(copy.folder / "artifacts/out/tiny/fp32", tmp_path / "before")
    copy.edit("models/tiny.py", "Linear(4, 8)", "Linear(4, 16)")
    copy.edit("models/tiny.py", "Linear(8, 2)", "Linear(16, 2)")
    copy.edit("tiny.yaml", "100000", "10")
    assert copy("run", "tiny.yaml", "--only", "fp32").code == 3
    seen = copy("diff", str(tmp_path / "before"), "tiny:fp32")
    (verdict,) = lines_of(seen, "verdicts")
    found = re.fullmatch(
        r"fails now: fp32/max-size: the model has (\d+) bytes; at most 10 are allowed", verdict
    )
    assert found is not None, verdict
    figures = [
        line for line in lines_of(seen, "accuracy") if line.startswith("size_bytes of max_size: ")
    ]
    assert len(figures) == 1
    assert f" -> {found[1]} (+" in figures[0]
