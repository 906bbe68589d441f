"""`calibration.data` may be files, or the dummy inputs, instead of a callable."""

import pytest

from onnxbuild.core.errors import RecipeErrors
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.recipe.load import load_recipes

RECIPE = """\
version: 1
name: demo
model: model.py:load
dummy_inputs: {{x: {{dtype: float32, shape: [2]}}}}
quantization: {{int8: static}}
calibration: {{data: {data}}}
"""


@pytest.fixture
def load(tmp_path):
    project = tmp_path / "project"
    (project / "data" / "more").mkdir(parents=True)
    (project / "pyproject.toml").write_text("")
    (project / "model.py").write_text("def load(): ...\ndef samples(): ...\n")
    for name in ("one.npz", "data/b.npy", "data/a.npy", "data/more/c.npz"):
        (project / name).write_bytes(b"")
    (tmp_path / "elsewhere.npz").write_bytes(b"")

    def from_data(data):
        path = project / "demo.yaml"
        path.write_text(RECIPE.format(data=data))
        return load_recipes(path, project=project).recipes[0].entrypoints["calibration"]

    return from_data


@pytest.mark.parametrize(
    ("data", "files"),
    [
        ("one.npz", ("one.npz",)),
        ("data", ("data/a.npy", "data/b.npy", "data/more/c.npz")),
        ('"data/*.npy"', ("data/a.npy", "data/b.npy")),
    ],
)
def test_files_are_declared_by_what_the_recipe_names(load, data, files):
    assert load(data) == Entrypoint("files", files=files)


def test_files_outside_the_project_keep_no_place_of_this_machine(load, tmp_path):
    found = load("../elsewhere.npz")
    assert found.files == ("<calibration.data 1>/elsewhere.npz",)
    assert found.outside == {"<calibration.data 1>": str(tmp_path)}


def test_a_callable_is_still_one(load):
    assert load("model.py:samples").target == "model.py:samples"
    assert load("{entrypoint: model.py:samples, files: [one.npz]}").files == ("one.npz",)


@pytest.mark.parametrize("data", ["two.npz", '"data/*.npz"'])
def test_files_that_are_not_there_are_an_error(load, data):
    with pytest.raises(RecipeErrors) as caught:
        load(data)
    (fault,) = caught.value.faults
    shown = data.strip('"')
    assert fault.what == f"'{shown}' in calibration.data matches no file below '.'"


def test_what_is_neither_is_reported_what_is_expected(load):
    with pytest.raises(RecipeErrors) as caught:
        load("datta")
    (fault,) = caught.value.faults
    assert fault.what == (
        "calibration.data is 'datta'; expected FILE.py:CALLABLE or package.module:CALLABLE, "
        ".npz or .npy files, dummy, or pipeline"
    )
