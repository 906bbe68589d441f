"""A recipe in full is the same recipe: it lints, and its steps are the same."""

import shutil
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from onnxbuild.building.request import Request, graph_of
from onnxbuild.core.errors import RecipeErrors, UsageError
from onnxbuild.document.faults import Faults
from onnxbuild.document.node import plain
from onnxbuild.explanation.command import explain
from onnxbuild.recipe.yaml.read import read_yaml
from onnxbuild.recipe.yaml.write import scalar_text
from tests.recipes.test_smollm2 import RECIPE

ROOT = Path(__file__).parents[2]
RECIPES = sorted(set((ROOT / "recipes").glob("*.yaml")) - {RECIPE})


def steps(path, **settings):
    """Name -> all that enters a step's key besides the contents of files."""
    graph = graph_of(Request((path,), settings=settings))
    return {name: (each.kind, each.params, each.inputs) for name, each in graph.steps.items()}


def in_full(path, **settings):
    return list(explain((path,), settings))


def same(path, **settings):
    """The texts in full of a file's recipes, which were held against the file."""
    texts = in_full(path, **settings)
    full = {}
    for n, text in enumerate(texts):
        other = path.with_name(f"full-{n}.yaml")
        other.write_text(text)
        full |= steps(other)
        (again,) = in_full(other)
        lines = [line for line in again.splitlines() if not line.startswith("#")]
        assert not [line for line in lines if line.endswith("# default")], (
            "nothing is left to fill in"
        )
    assert full == steps(path, **settings)
    return texts


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "models").mkdir()
    (tmp_path / "models/m.py").write_text("def load(**a): pass\ndef data(): pass\n")
    return tmp_path


BASE = """\
version: 1
name: base
vars: {width: 4, odd: "{{ '{{' }}x"}
model: {entrypoint: m.py:load, args: {width: "{{ width }}", note: "{{ odd }}"}, files: [d/*.txt]}
dummy_inputs: {x: {dtype: float32, shape: [batch, "{{ width }}"]}}
dynamic_axes: {batch: {min: 1, max: 4, example: 2}}
quantization: dynamic
"""


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_in_full_has_the_same_steps(recipe, tmp_path):
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "recipes", tmp_path / "recipes", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    same(tmp_path / "recipes" / recipe.name)


def test_bases_templates_and_the_command_line_are_named(folder):
    (folder / "models/d").mkdir()
    (folder / "models/d/a.txt").touch()
    (folder / "models/base.yaml").write_text(BASE)
    path = folder / "mine.yaml"
    path.write_text("extends: models/base.yaml\nname: mine\noptimize: none\nproviders: [cpu]\n")
    (text,) = same(path, opset="17")
    for line in (
        "version: 1  # models/base.yaml:1",
        "name: mine",
        "  entrypoint: models/m.py:load  # models/base.yaml:4",
        '  args: {width: 4, note: "{{ \\"{{x\\" }}"}  # template, models/base.yaml:4',
        "  files: [models/d/*.txt]  # models/base.yaml:4",
        "opset: 17  # --set opset",
        "  level: none",
        "    multiple_of: 1  # default",
        "# fidelity:  # default",
    ):
        assert line in text.splitlines()


def test_a_matrix_gives_a_recipe_for_each_combination_under_its_name(folder):
    path = folder / "models/sweep.yaml"
    path.write_text(BASE.replace(", files: [d/*.txt]", "") + "matrix: {width: [4, 8]}\n")
    four, eight = same(path)
    assert four.startswith("# base@width=4: models/sweep.yaml in full")
    assert "  width: [8]\n" in eight
    assert len(in_full(path, width="16")) == 1


def test_what_a_models_file_says_is_written_with_its_name(folder):
    node = helper.make_node("Gemm", ["x", "w"], ["y"])
    weights = helper.make_tensor("w", TensorProto.FLOAT, [3, 2], [0.5] * 6)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node],
        "g",
        [value("x", TensorProto.FLOAT, ["n", 3])],
        [value("y", TensorProto.FLOAT, ["n", 2])],
        [weights],
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets), folder / "models/g.onnx")
    path = folder / "g.yaml"
    path.write_text(
        "version: 1\nname: g\nmodel: {onnx: models/g.onnx}\ndynamic_axes: {n: {max: 9}}\n"
    )
    (text,) = same(path)
    for line in (
        "model:\n  onnx: models/g.onnx\n",
        "frontend: onnx  # from models/g.onnx\n",
        "dummy_inputs:  # from models/g.onnx\n  x: {dtype: float32, shape: [n, 3]}\n",
        "outputs: [y]  # from models/g.onnx\n",
        "    min: 1  # from models/g.onnx\n    max: 9\n",
        "opset: 17  # from models/g.onnx\n",
    ):
        assert line in text


def test_a_callable_that_gives_onnx_has_no_opset_to_write(folder):
    path = folder / "own.yaml"
    path.write_text(
        BASE.replace(", files: [d/*.txt]", "").replace("m.py", "models/m.py") + "frontend: onnx\n"
    )
    (text,) = same(path)
    assert "# opset: 18  # default\n" in text


def test_a_module_of_a_base_elsewhere_is_refused(folder):
    (folder / "models/base.yaml").write_text(
        BASE.replace("m.py:load", "m:load").replace(", files: [d/*.txt]", "")
    )
    path = folder / "mine.yaml"
    path.write_text("extends: models/base.yaml\nname: mine\n")
    with pytest.raises(UsageError, match=r"its base .* is in another folder, and names a module"):
        in_full(path)


def test_libraries_of_a_base_elsewhere_are_written_relative_to_the_recipe(folder):
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 4], [1.0] * 16)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in "xy"]
    graph = helper.make_graph([node], "net", values[:1], values[1:], [weight])
    imports = [helper.make_opsetid("", 18)]
    made = helper.make_model(graph, ir_version=10, opset_imports=imports)
    onnx.save(made, folder / "models/m.onnx")
    (folder / "models/libfancy.so").write_bytes(b"")
    (folder / "models/base.yaml").write_text(
        "version: 1\nmodel: {onnx: m.onnx}\noperators: {libraries: [libfancy.so]}\n"
    )
    path = folder / "mine.yaml"
    path.write_text("extends: models/base.yaml\nname: mine\n")
    (text,) = same(path)
    assert "libraries: [models/libfancy.so]" in text


def test_a_faulty_recipe_is_refused_with_all_its_faults(folder):
    path = folder / "bad.yaml"
    path.write_text("version: 1\nname: bad\nmodel: models/m.py:lod\nopset: 9\n")
    with pytest.raises(RecipeErrors) as raised:
        in_full(path)
    assert len(raised.value.faults) > 2


@pytest.mark.parametrize(
    "value",
    ["a", "1e3", "~", "a #b", "&a", "m.py:f", "{{ a }}", -2, 1e20, " a "],
)  # fmt: skip
def test_every_scalar_is_read_as_it_was(value):
    faults = Faults()
    read = read_yaml(f"a: {scalar_text(value)}\nb: [{scalar_text(value)}]\n".encode(), "f", faults)
    assert not faults
    if isinstance(value, str) and "{" in value and value != "{a}":
        from onnxbuild.recipe.templates.expand import Renderer

        read = Renderer(faults).render(read, {})
    assert plain(read) == {"a": value, "b": [value]}
