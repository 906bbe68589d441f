"""`model: {onnx: FILE}`: what the file says, what the recipe says over it, and what neither can say."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxbuild
from onnxbuild.core.recipe import FILE_DATA, Axis, DummyInput
from tests.features.frontends.test_onnx import mlp
from tests.onnxkit.models import linear, model, value, weight
from tests.written_recipes import faults, loader

HEAD = "version: 1\nname: demo\nmodel: {onnx: m.onnx}\n"


@pytest.fixture
def load(tmp_path):
    onnx.save(linear(), tmp_path / "m.onnx")
    return loader(tmp_path)


def only(load, text):
    (recipe,) = load(text).recipes
    return recipe


def test_three_lines_are_a_recipe(load):
    recipe = only(load, HEAD)
    assert recipe.frontend == "onnx"
    assert (recipe.model.target, recipe.model.files) == (FILE_DATA, ("m.onnx",))
    assert recipe.inputs == (DummyInput("x", "float32", ("batch", 4)),)
    assert recipe.axes == (Axis("batch", min=1, max=8, example=2),)
    assert recipe.outputs == ("y",)
    assert recipe.opset == 18


def test_what_is_written_comes_first(load):
    text = (
        "version: 1\nname: demo\nmodel: {onnx: m.onnx, rename: {x: image}}\n"
        "dummy_inputs: {image: {shape: [rows, 4], low: 0}}\n"
        "dynamic_axes: {rows: {min: 3, multiple_of: 3}}\nopset: 20\n"
    )
    recipe = only(load, text)
    assert recipe.inputs == (DummyInput("image", "float32", ("rows", 4), low=0),)
    assert recipe.axes == (Axis("rows", min=3, max=9, example=3, multiple_of=3),)
    assert recipe.opset == 20


def test_names_that_converters_make_up_are_replaced(tmp_path):
    load = loader(tmp_path)
    shape = ["unk__214", 3, "p2o.DynamicDimension.1", "seq"]
    made = model(
        [helper.make_node("Relu", ["x"], ["y"])], [value("x", shape)], [value("y", shape)]
    )
    onnx.save(made, tmp_path / "m.onnx")
    assert only(load, HEAD).inputs[0].shape == ("batch", 3, "x_2", "seq")


@pytest.mark.parametrize(
    ("shapes", "found"),
    [
        ([[None, "batch"]], [("x0_0", "batch")]),
        ([["None", "None", "None", 3]], [("batch", "x0_1", "x0_2", 3)]),
        ([["b", "s"], ["b", "s + t"], ["b", "2*s"]], [("b", "s"), ("b", "x1_1"), ("b", "x2_1")]),
    ],
)
def test_an_axis_is_not_called_as_another_one_of_the_file(tmp_path, shapes, found):
    load = loader(tmp_path)
    names = [f"x{n}" for n in range(len(shapes))]
    made = model(
        [helper.make_node("Relu", [name], [f"{name}_out"]) for name in names],
        [value(name, shape) for name, shape in zip(names, shapes, strict=True)],
        [value(f"{name}_out", shape) for name, shape in zip(names, shapes, strict=True)],
    )
    onnx.save(made, tmp_path / "m.onnx")
    assert [each.shape for each in only(load, HEAD).inputs] == found


def test_indices_are_drawn_from_their_table(tmp_path):
    load = loader(tmp_path)
    made = model(
        [helper.make_node("Gather", ["table", "ids"], ["y"])],
        [value("ids", ["batch", "sequence"], TensorProto.INT64)],
        [value("y", ["batch", "sequence", 8])],
        [weight("table", np.zeros((50, 8), np.float32))],
    )
    onnx.save(made, tmp_path / "m.onnx")
    (ids,) = only(load, HEAD).inputs
    assert (ids.low, ids.high) == (0, 50)


def external(folder):
    made = mlp()
    onnx.save(
        made, folder / "m.onnx", save_as_external_data=True, size_threshold=0, location="a.data"
    )


def test_files_of_weights_are_declared_by_the_same_line(tmp_path):
    load = loader(tmp_path)
    external(tmp_path)
    assert only(load, HEAD).model.files == ("m.onnx", "a.data")
    (tmp_path / "a.data").unlink()
    ((what, where, fix),) = faults(load, HEAD)
    assert what == "m.onnx has weights in 'a.data', and there is no such file in its folder"
    assert where == "demo.yaml:3:15"
    assert fix.startswith("copy the file there")


def test_as_many_other_outputs_are_new_names_by_position(load):
    recipe = only(
        load, "version: 1\nname: demo\nmodel: {onnx: m.onnx, rename: {x: a}}\noutputs: [probs]\n"
    )
    assert recipe.outputs == ("probs",)
    assert recipe.model.args["rename"] == {"x": "a", "y": "probs"}


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        ("model: {onnx: n.onnx}", "model.onnx: there is no file 'n.onnx'; did you mean 'm.onnx'?", "write `m.onnx`"),
        ("model: {onnx: model.py}", "model.py can't be read: it is no ONNX model", "check that the file is complete"),
        ("model: {onnx: m.onnx, args: {}}", "model has `onnx` and `args`", "remove `args`"),
        ("model: {onnx: m.onnx, entrypoint: model.py:load}", "model has `onnx` and `entrypoint`", "remove `entrypoint`"),
        ("model: {onx: m.onnx}", "key 'onx' is not a key of a model; did you mean 'onnx'?", "write `onnx`"),
        ("model: {args: {}}", "key 'entrypoint' is missing in model", "add `entrypoint:"),
        ("model: {onnx: 3}", "model.onnx is 3; expected a string", "quote it"),
        ("model: {onnx: m.onnx, rename: {z: a}}", "`rename` names 'z', which is neither", "it has x, y"),
        ("model: {onnx: m.onnx}\ndummy_inputs: {X: {low: 0}}", "the model has no input 'X'", "it has x"),
        ("model: {onnx: m.onnx, rename: {x: 'a b'}}", "input is called 'a b'", 'write `rename: {"x": a_b}`'),
        ("model: {onnx: m.onnx}\noutputs: [y, z]", "the model has no output 'z'", "it has y"),
        ("model: {onnx: m.onnx, rename: {y: logits}}\noutputs: [logit]", "has no output 'logit'", "did you mean 'logits'?"),
        ("model: {onnx: m.onnx}\nfrontend: pytorch", "frontend is 'pytorch', and the model is named by `onnx`", "remove"),
        ("model: {onnx: m.onnx}\nopset: 17", "opset is 17, and the model has opset 18", "write `opset: 18`"),
        ("model: {onnx: m.onnx, rename: 3}", "model.rename is 3; expected a mapping", "write a mapping"),
        ("model: {onnx: m.onnx}\ndynamic_axes: {bach: {min: 2, max: 4, example: 2}}", "'bach'", ""),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_line_and_the_fix(load, text, what, fix):
    found = faults(load, f"version: 1\nname: demo\n{text}\n")
    assert any(what in each for each, _, _ in found), found
    assert any(fix in each for _, _, each in found), found
    assert all(where.startswith("demo.yaml:") for _, where, _ in found)


@pytest.mark.parametrize(
    ("made", "what", "fix"),
    [(linear(opset=9), "the model has opset 9; expected at least 11", "write `opset: 18`"), (
            model([helper.make_node("Relu", ["a:0"], ["y"])], [value("a:0", [1])], [value("y", [1])]),
            "the model's input is called 'a:0', which can be no name in a recipe",
            'write `rename: {"a:0": a_0}`',
        ), (
            model([helper.make_node("Relu", ["x"], ["y"])], [value("x", None)], [value("y", None)]),
            "the model does not say how many dimensions input 'x' has",
            "write `dummy_inputs: {x: {shape: [batch, ...]}}`",
        ), (
            model([], [value("x", [1])], [value("x", [1])]),
            "output 'x' has the name of an input",
            "save the model with an Identity in front of that output",
        )],
)  # fmt: skip
def test_a_model_that_no_recipe_can_declare_is_refused(tmp_path, made, what, fix):
    load = loader(tmp_path)
    onnx.save(made, tmp_path / "m.onnx")
    ((found, where, mend),) = faults(load, HEAD)
    assert what in found
    assert where == "demo.yaml:3:15"
    assert fix in mend


@pytest.mark.parametrize(
    ("rename", "what", "where"),
    [
        ("{a: q, b: q}", "'a' and 'b' of the model are both called 'q'", "demo.yaml:3:38"),
        ("{y: z}", "'y' and 'z' of the model are both called 'z'", "demo.yaml:3:32"),
    ],
)
def test_names_that_rename_makes_one_are_refused(tmp_path, rename, what, where):
    nodes = [helper.make_node(kind, ["a", "b"], [to]) for kind, to in (("Add", "y"), ("Sub", "z"))]
    values = {name: value(name, ["n", 4]) for name in "abyz"}
    made = model(nodes, [values["a"], values["b"]], [values["y"], values["z"]])
    onnx.save(made, tmp_path / "m.onnx")
    text = HEAD.replace("m.onnx", f"m.onnx, rename: {rename}")
    ((found, place, fix),) = faults(loader(tmp_path), text + "outputs: [z]\n")
    assert what in found
    assert (place, fix) == (where, "give each a name of its own")


def build(folder, text, **settings):
    (folder / "pyproject.toml").write_text("")
    (folder / "demo.yaml").write_text(
        HEAD + "benchmark: {max_time_s: 0.1, min_samples: 3}\n" + text
    )
    return onnxbuild.build(onnxbuild.Request((folder / "demo.yaml",), **settings))


@pytest.mark.slow
@pytest.mark.usefixtures("warm_steps")
def test_it_is_built_in_another_opset_and_held_against_itself_as_it_was(tmp_path):
    external(tmp_path)
    result = build(tmp_path, "opset: 19\nquantization: {fp32: none, int8: dynamic}\n")
    assert result.exit_code == 0, result.report.failures
    out = tmp_path / "artifacts/out/demo"
    for name in ("fp32", "int8"):
        manifest = json.loads((out / name / "manifest.json").read_text())
        assert manifest["opsets"]["ai.onnx"] == 19
        assert manifest["outputs"][0]["shape"] == ["batch", 2]
        assert manifest["validation"]["cpu"]["passed"]
    assert (
        build(tmp_path, "opset: 19\nquantization: {fp32: none, int8: dynamic}\n").report.built
        == []
    )
