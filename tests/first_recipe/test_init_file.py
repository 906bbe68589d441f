"""`init MODEL.onnx`: the file says its recipe, which lints, builds, and is never put over another."""

import re

import numpy as np
import onnx
import pytest
import yaml
from onnx import TensorProto, helper, numpy_helper

from onnxbuild.catalog import MODES
from tests.first_recipe.conftest import files_in

VALUE = helper.make_tensor_value_info


def save_model(path, *, inputs=("x",), opset=17, shape=("n", 3)):
    """A sum of inputs, times a table."""
    weights = numpy_helper.from_array(np.eye(3, 2, dtype=np.float32), "w")
    nodes = [
        helper.make_node("Sum", list(inputs), ["sum"]),
        helper.make_node("MatMul", ["sum", "w"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [VALUE(name, TensorProto.FLOAT, shape) for name in inputs],
        [VALUE("y", TensorProto.FLOAT, ["n", 2])],
        [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    path.parent.mkdir(exist_ok=True)
    onnx.save(model, path)


def written(path):
    return yaml.safe_load(path.read_text())


def test_the_recipe_has_what_the_file_says_and_lints(here, onnxbuild):
    save_model(here / "weights/two.onnx", inputs=("a", "b"))
    said = onnxbuild("init", "weights/two.onnx")
    assert said.code == 0
    assert said.err == ""
    assert said.out.splitlines() == [
        "wrote recipes/two.yaml",
        "wrote recipes/two_data.py",
        "  2 inputs: a, b",
        "  outputs: y",
        "next: onnxbuild run recipes/two.yaml",
    ]
    assert files_in(here) - {".git"} == {
        "recipes",
        "recipes/two.yaml",
        "recipes/two_data.py",
        "weights",
        "weights/two.onnx",
    }
    assert written(here / "recipes/two.yaml") == {
        "version": 1,
        "name": "two",
        "model": {"onnx": "../weights/two.onnx"},
        "dummy_inputs": {name: {"dtype": "float32", "shape": ["n", 3]} for name in "ab"},
        "outputs": ["y"],
        "dynamic_axes": {"n": {"min": 1, "max": 8, "example": 2}},
        "opset": 17,
        "quantization": {"fp32": "none"},
    }
    assert onnxbuild("lint", "recipes/two.yaml").code == 0


def test_every_mode_has_a_line_that_lints_once_it_is_a_line_or_says_what_it_needs(here, onnxbuild):
    save_model(here / "two.onnx")
    onnxbuild("init", "two.onnx", "-o", "two.yaml")
    text = (here / "two.yaml").read_text()
    lines = re.findall(r"^  # (\S+: \S+)(  # needs more: .*)?$", text, re.MULTILINE)
    assert {line.split(": ")[1] for line, _ in lines} == {
        name for name, mode in MODES.items() if not mode.is_plain
    }
    for line, needed in lines:
        (here / "other.yaml").write_text(text.replace(f"  # {line}", f"  {line}"))
        said = onnxbuild("lint", "other.yaml")
        assert (said.code == 0) == (not needed)
        fix = needed.removeprefix("  # needs more: ").replace(
            "two_data.py:samples", "FILE.py:CALLABLE"
        )
        assert fix in said.err


def test_a_search_lints_with_all_that_its_line_says_it_needs(here, onnxbuild):
    save_model(here / "two.onnx")
    onnxbuild("init", "two.onnx", "-o", "two.yaml")
    text = (here / "two.yaml").read_text()
    (line,) = [each for each in text.splitlines() if ": auto  # needs more: " in each]
    variant, data = re.findall("`(.*?)`", line)
    (here / "two.yaml").write_text(f"{text.replace(line, f'  {variant}')}\n{data}\n")
    assert onnxbuild("lint", "two.yaml").code == 0


@pytest.mark.slow
def test_the_recipe_builds_as_it_is_and_with_the_stubs_of_data(here, onnxbuild):
    save_model(here / "two.onnx")
    assert onnxbuild("init", "two.onnx").code == 0
    assert onnxbuild("run", "recipes/two.yaml").code == 0
    assert (here / "artifacts/out/two/fp32/model.onnx").is_file()
    recipe = here / "recipes/two.yaml"
    text = re.sub(r"(?m)^# (calibration|evaluate):", r"\1:", recipe.read_text())
    recipe.write_text(re.sub(r"(?m)^  # (int8-static: static).*", r"  \1", text))
    assert onnxbuild("run", "recipes/two.yaml").code == 0
    assert (here / "artifacts/out/two/int8-static/evaluation.json").is_file()


@pytest.mark.slow
def test_nothing_is_overwritten(here, onnxbuild):
    save_model(here / "two.onnx")
    onnxbuild("init", "two.onnx")
    (here / "recipes/two.yaml").write_text("mine")
    said = onnxbuild("init", "two.onnx")
    assert said.code == 2
    assert said.err.startswith(
        "error: recipes/two.yaml exists, and nothing is overwritten\n  fix: "
    )
    assert (here / "recipes/two.yaml").read_text() == "mine"
    assert onnxbuild("init", "two.onnx", "--name", "other").code == 0
    (here / "link.yaml").symlink_to("nowhere.yaml")
    assert onnxbuild("init", "two.onnx", "-o", "link.yaml").code == 2
    assert not (here / "nowhere.yaml").exists()


@pytest.mark.parametrize(
    ("source", "what", "fix"),
    [
        ("two.onx", "there is no two.onx; did you mean 'two.onnx'?", "write `two.onnx`"),
        (
            "notes.txt",
            "notes.txt is no model that onnxbuild knows by its name",
            "name the model's",
        ),
        (
            "notes.txt",
            "notes.txt is no model",
            "a .json or .ubj file that XGBoost's `save_model` wrote, a text file",
        ),
        ("empty", "there is no model in empty", "name the model's file, or the folder"),
        ("models", "models is a folder; it has deep.onnx", "onnxbuild init models/deep.onnx"),
        ("recipe.yaml", "recipe.yaml is a recipe, or could be one", "onnxbuild run recipe.yaml"),
        ("text.onnx", "text.onnx can't be read", "git-lfs"),
        ("code.py", "code.py names no callable", "write `code.py:load`"),
        (
            "nets.py",
            "nets.py names no callable; expected FILE.py:CALLABLE; it defines make, Net, load, Wide",
            "write `nets.py:make`",
        ),
        ("net.safetensors", "net.safetensors holds weights alone", "write a callable that builds"),
        ("net.h5", "net.h5 is no file that onnxbuild reads", "save it anew"),
        ("code.py:lod", "code.py defines no 'lod'; did you mean 'load'?", "write `code.py:load`"),
        ("cod.py:load", "there is no cod.py; did you mean 'code.py'?", "write `code.py:load`"),
        ("far/away.py:load", "there is no far/away.py", "write the path of a model"),
        ("code.py:a b", "'a b' is no name of a callable", "write `code.py:load`"),
    ],
)
def test_what_is_no_model_is_one_error_and_nothing_is_written(here, onnxbuild, source, what, fix):
    save_model(here / "two.onnx")
    save_model(here / "models/deep.onnx")
    (here / "empty").mkdir()
    (here / "code.py").write_text("def load(): pass\n")
    nets = "class Net:\n    def __init__(self, width=8): ...\n"
    nets += "class Wide:\n    def __init__(self, *, width): ...\n"
    nets += "def load(width): ...\ndef _make(): ...\ndef make(width=8): ...\n"
    (here / "nets.py").write_text(nets)
    for name in ("net.safetensors", "net.h5", "notes.txt", "text.onnx", "recipe.yaml"):
        (here / name).write_text("some words\n")
    before = files_in(here)
    said = onnxbuild("init", source)
    assert said.code == 2
    assert said.out == ""
    assert said.err.startswith(f"error: {what}")
    assert fix in said.err
    assert said.err.count("error:") == 1
    assert files_in(here) == before


@pytest.mark.parametrize("name", ["a b", "", "../x", "-x"])
def test_a_name_that_no_recipe_can_have_is_refused(here, onnxbuild, name):
    save_model(here / "two.onnx")
    said = onnxbuild("init", "two.onnx", f"--name={name}")
    assert (said.code, said.out) == (2, "")
    assert "can be no recipe's name" in said.err


def test_a_folder_that_can_not_be_written_is_one_error(here, onnxbuild):
    save_model(here / "two.onnx")
    (here / "recipes").write_text("a file")
    said = onnxbuild("init", "two.onnx")
    assert said.code != 0
    assert "bug" not in said.err
    assert files_in(here) == {".git", "two.onnx", "recipes"}


@pytest.mark.slow
def test_what_a_recipe_must_say_to_mend_a_file_is_written_and_builds(here, onnxbuild):
    save_model(here / "old.onnx", inputs=("x:0", "a b"), opset=9)
    said = onnxbuild("init", "old.onnx", "-o", "old.yaml")
    assert said.code == 0, said.err
    found = written(here / "old.yaml")
    assert found["opset"] == 18
    assert found["model"] == {"onnx": "old.onnx", "rename": {"x:0": "x_0", "a b": "a_b"}}
    assert set(found["dummy_inputs"]) == {"x_0", "a_b"}
    assert "fill in" not in said.out
    assert onnxbuild("run", "old.yaml").code == 0


def test_dimensions_that_a_file_does_not_say_are_marked(here, onnxbuild):
    save_model(here / "any.onnx", inputs=("a", "b"), shape=None)
    said = onnxbuild("init", "any.onnx", "-o", "any.yaml")
    assert said.code == 0, said.err
    text = (here / "any.yaml").read_text()
    marks = [n for n, line in enumerate(text.splitlines(), 1) if "FILL IN: write `dummy" in line]
    assert len(marks) == 2
    assert f"fill in first: any.yaml, line {marks[0]}, {marks[1]}\n" in said.out
    assert written(here / "any.yaml")["dummy_inputs"]["b"] == {
        "dtype": "float32",
        "shape": ["batch"],
    }
    assert onnxbuild("lint", "any.yaml").code == 0


def test_a_file_of_the_users_own_data_is_kept(here, onnxbuild):
    save_model(here / "two.onnx")
    (here / "two_data.py").write_text("mine")
    said = onnxbuild("init", "two.onnx", "-o", "two.yaml")
    assert (said.code, said.out.splitlines()[0]) == (0, "wrote two.yaml")
    assert (here / "two_data.py").read_text() == "mine"


@pytest.mark.slow
def test_types_that_skops_does_not_trust_are_named(here, onnxbuild):
    skops_io = pytest.importorskip("skops.io")
    from sklearn.ensemble import HistGradientBoostingClassifier

    x = np.random.default_rng(0).random((60, 2))
    trees = HistGradientBoostingClassifier(max_iter=1).fit(x, x[:, 0] > 0.5)
    skops_io.dump(trees, here / "f.skops")
    assert onnxbuild("init", "f.skops", "-o", "f.yaml").code == 0
    trusted = skops_io.get_untrusted_types(file=here / "f.skops")
    assert written(here / "f.yaml")["model"] == {"sklearn": "f.skops", "trusted": trusted}
    assert len(trusted) > 0
