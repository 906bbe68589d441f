"""`init` of files that do not say all: they are run in a fenced process, and nothing is written if that fails."""

import warnings

import numpy as np
import onnx
import pytest
import torch
import yaml
from onnx import helper

from tests.first_recipe.conftest import files_in
from tests.onnxkit import models

pytestmark = pytest.mark.slow


def written(path):
    return yaml.safe_load(path.read_text())


def test_an_onnx_file_is_tried_and_its_recipe_lints(here, onnxbuild):
    made = models.model(
        [helper.make_node("Reshape", ["x", "s"], ["y"])],
        [models.value("x", ["batch", "width"])],
        [models.value("y", ["batch", None, 32])],
        [models.weight("s", np.array([0, -1, 32]))],
    )
    onnx.save(made, here / "m.onnx")
    said = onnxbuild("init", "m.onnx", "-o", "m.yaml")
    assert said.code == 0, said.err
    width = {"min": 32, "max": 64, "example": 32, "multiple_of": 32}
    assert written(here / "m.yaml")["dynamic_axes"]["width"] == width
    assert "# tried: axis 'width' takes multiples of 32 alone" in (here / "m.yaml").read_text()
    assert onnxbuild("lint", "m.yaml").code == 0


def test_torchscript_gets_the_inputs_that_it_ran_with(here, onnxbuild):
    layers = torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.ReLU()).eval()
    with warnings.catch_warnings(action="ignore"):  # TorchScript is deprecated
        torch.jit.save(torch.jit.script(layers), here / "m.pt")
    said = onnxbuild("init", "m.pt", "-o", "m.yaml")
    assert said.code == 0, said.err
    assert "fill in" not in said.out
    inputs = written(here / "m.yaml")["dummy_inputs"]
    assert inputs == {"input": {"dtype": "float32", "shape": ["batch", 5]}}
    assert onnxbuild("lint", "m.yaml").code == 0
    said = onnxbuild("init", "m.pt", "-o", "part.yaml", "--submodule", "0")
    assert written(here / "part.yaml")["model"] == {"torchscript": "m.pt", "submodule": "0"}


def test_a_pickle_is_loaded_only_if_it_is_allowed(here, onnxbuild):
    joblib = pytest.importorskip("joblib")
    from sklearn.linear_model import LogisticRegression

    rows = np.random.default_rng(0).standard_normal((20, 5))
    joblib.dump(LogisticRegression().fit(rows, rows[:, 0] > 0), here / "m.joblib")
    (here / "bad.joblib").write_bytes(b"no pickle")
    before = files_in(here)
    said = onnxbuild("init", "m.joblib")
    assert (said.code, said.out) == (2, "")
    assert "`onnxbuild init --allow-pickle`" in said.err
    said = onnxbuild("init", "bad.joblib", "--allow-pickle")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("error: bad.joblib can't be loaded")
    assert files_in(here) == before
    assert onnxbuild("init", "m.joblib", "-o", "m.yaml", "--allow-pickle").code == 0
    assert written(here / "m.yaml")["dummy_inputs"]["features"]["shape"] == ["batch", 5]
    assert onnxbuild("lint", "m.yaml").code == 0
