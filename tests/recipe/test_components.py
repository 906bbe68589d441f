"""A recipe of several models: what its components share, and what is wrong with one."""

import pytest

from onnxbuild.core.recipe import ConnectedInput, Location
from onnxbuild.host.host import HostFacts
from onnxbuild.resolver import resolve

WHOLE = """\
version: 1
name: demo
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
opset: 17
quantization: {fp32: none, int8: dynamic}
components:
  encoder:
    model: models/model.py:load
    dummy_inputs: {ids: {dtype: int64, shape: [batch], high: 10}}
    quantization: none
  decoder:
    model: {entrypoint: models/model.py:load, args: {hidden: 4}}
    dummy_inputs: {ids: {dtype: int64, shape: [batch, length], high: 10}}
    dynamic_axes: {length: {min: 1, max: 4, example: 3}}
    opset: 18
"""


def test_each_component_is_a_recipe_over_what_they_share(project):
    encoder, decoder = project.load(WHOLE).recipes
    assert (encoder.name, encoder.base, encoder.component) == ("demo@encoder", "demo", "encoder")
    assert (decoder.name, decoder.base, decoder.component) == ("demo@decoder", "demo", "decoder")
    assert (encoder.opset, decoder.opset) == (17, 18)
    assert [axis.name for axis in encoder.axes] == ["batch"]
    assert [axis.name for axis in decoder.axes] == ["batch", "length"]  # mappings are merged
    assert [each.name for each in encoder.variants] == ["fp32"]  # the rest is replaced
    assert [each.name for each in decoder.variants] == ["fp32", "int8"]
    assert encoder.lines["opset"] == Location("recipes/demo.yaml", 4, 1)
    assert decoder.lines["opset"] == Location("recipes/demo.yaml", 15, 5)


def test_a_recipe_with_one_model_has_no_component(project, base):
    assert project.recipe(base).component == ""


def test_components_are_made_at_each_combination_of_a_matrix(project):
    text = WHOLE.replace("opset: 17\n", "opset: '{{ size }}'\nmatrix: {size: [16, 17]}\n")
    recipes = {each.name: each.opset for each in project.load(text).recipes}
    assert recipes == {
        "demo@encoder,size=16": 16,
        "demo@encoder,size=17": 17,
        "demo@decoder,size=16": 18,
        "demo@decoder,size=17": 18,
    }


def test_components_and_what_they_share_may_be_a_bases(project):
    project.write("recipes/base.yaml", WHOLE)
    over = "version: 1\nextends: base.yaml\nname: other\ncomponents: {decoder: {opset: 19}}\n"
    assert {each.name: each.opset for each in project.load(over).recipes} == {
        "other@encoder": 17,
        "other@decoder": 19,
    }


@pytest.mark.parametrize(
    ("key", "opsets"), [("opset", (20, 20)), ("components.decoder.opset", (17, 20))]
)
def test_set_comes_before_all_that_components_have(project, key, opsets):
    assert tuple(each.opset for each in project.load(WHOLE, {key: "20"}).recipes) == opsets


def test_a_var_that_a_component_takes_may_be_set(project):
    text = WHOLE.replace("opset: 18", "opset: '{{ own }}'") + "vars: {own: 18}\n"
    assert [each.opset for each in project.load(text, {"own": "19"}).recipes] == [17, 19]


SHARED = """\
version: 1
name: demo
dynamic_axes:
  batch: {min: 1, max: 8, example: 2}
  length: {min: 1, max: 4, example: 3}
components:
  encoder:
    model: models/model.py:load
    dummy_inputs: {ids: {dtype: int64, shape: [batch], high: 10}}
  decoder:
    model: models/model.py:load
    dummy_inputs: {ids: {dtype: int64, shape: [batch, length], high: 10}}
"""


def test_a_component_has_those_of_the_shared_axes_that_its_shapes_name(project):
    found = {each.component: each.axes for each in project.load(SHARED).recipes}
    assert [axis.name for axis in found["encoder"]] == ["batch"]
    assert [axis.name for axis in found["decoder"]] == ["batch", "length"]


def test_a_shared_axis_that_no_component_names_is_a_fault_and_so_is_an_own_one(project):
    unused = SHARED.replace("[batch, length]", "[batch]")
    assert project.faults(unused) == [
        "recipes/demo.yaml:5:3: axis 'length' is used by no shape of any component"
    ]
    own = SHARED + "    dynamic_axes: {rows: {min: 1, max: 2, example: 1}}\n"
    assert project.faults(own) == [
        "recipes/demo.yaml:13:20: axis 'rows' is used by no shape of dummy_inputs"
    ]
    misspelt = SHARED.replace("[batch, length]", "[batch, lenght]")
    assert project.faults(misspelt)[0].endswith(
        "is not declared in dynamic_axes; did you mean 'length'?"
    )


HEAD = "version: 1\nname: demo\n"
ONE = "components:\n  encoder:\n    model: models/model.py:load\n    dummy_inputs: {x: {dtype: float32, shape: [2]}}\n"
SLIPS = {
    "no components": (
        HEAD + "components: {}\n",
        ["3:13: components is an empty mapping; expected a mapping with at least one entry"],
    ),
    "no mapping": (
        HEAD + "components: {encoder: models/model.py:load}\n",
        [
            "3:23: components.encoder is 'models/model.py:load' (a string); expected a mapping with at least one entry"
        ],
    ),
    "a name that is no name": (
        HEAD + ONE.replace("encoder", "en-coder"),
        [
            "4:3: name 'en-coder' in components is not allowed; expected letters, digits and '_', not starting with a digit"
        ],
    ),
    "a model next to components": (
        HEAD + "model: models/model.py:load\n" + ONE,
        ["3:1: `model` is next to `components`; each component has its own"],
    ),
    "an unknown key": (
        HEAD + ONE + "    opsett: 17\n",
        ["7:5: key 'opsett' is not a key of a recipe; did you mean 'opset'?"],
    ),
    "a key of the whole": (
        HEAD + ONE + "    matrix: {a: [1]}\n",
        ["7:5: component 'encoder' has `matrix`, which belongs to the whole recipe"],
    ),
    "no model": (
        HEAD + "components:\n  encoder: {dummy_inputs: {x: {dtype: float32, shape: [2]}}}\n",
        ["4:12: key 'model' is missing in the recipe"],
    ),
    "a wrong value in each": (
        HEAD
        + ONE
        + "    opset: 99\n"
        + ONE.replace("components:\n", "").replace("encoder", "decoder")
        + "    opset: 99\n",
        [
            "7:12: opset is 99; expected an integer from 11 to 24",
            "11:12: opset is 99; expected an integer from 11 to 24",
        ],
    ),
    "a misspelt `components`": (
        HEAD + ONE.replace("components", "component"),
        ["3:1: key 'component' is not a key of a recipe; did you mean 'components'?"],
    ),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_reported_at_its_line(project, slip):
    text, faults = SLIPS[slip]
    assert project.faults(text) == [f"recipes/demo.yaml:{each}" for each in faults]


CONNECTED = WHOLE.replace("    quantization: none\n", "    outputs: [cross]\n").replace(
    "    dynamic_axes: {length",
    "      cross: {dtype: float32, shape: [batch, 3], from: encoder.cross}\n    dynamic_axes: {length",
).replace("    dummy_inputs: {ids: {dtype: int64, shape: [batch, length], high: 10}}\n", "    dummy_inputs:\n      ids: {dtype: int64, shape: [batch, length], high: 10}\n")  # fmt: skip


def test_an_input_may_be_another_components_output_and_is_no_other_input_for_that(project):
    decoder = project.load(CONNECTED).recipes[1]
    at = Location("recipes/demo.yaml", 15, 56)
    assert decoder.connections == (ConnectedInput("cross", "encoder", "cross", at),)
    plain = project.load(CONNECTED.replace(", from: encoder.cross", "")).recipes[1]
    assert (plain.inputs, plain.connections) == (decoder.inputs, ())


def test_connections_are_those_of_the_same_combination(project):
    text = CONNECTED.replace("opset: 17\n", "opset: '{{ size }}'\nmatrix: {size: [16, 17]}\n")
    recipes = project.load(text).recipes
    graph = resolve(recipes, HostFacts("x86_64", frozenset()))
    for size in (16, 17):
        step = graph.steps[f"demo@decoder,size={size}:connections"]
        assert step.inputs["source/encoder"].step == f"demo@encoder,size={size}:export"


DISCONNECTED = {
    "no such component": (
        ("encoder.cross", "encodr.cross"),
        "15:56: input 'cross' is from the component 'encodr', which is not there; did you mean 'encoder'?",
    ),
    "its own output": (
        ("encoder.cross", "decoder.cross"),
        "15:56: input 'cross' is from its own component, 'decoder'",
    ),
    "no such output": (
        ("encoder.cross", "encoder.crosses"),
        "15:56: input 'cross' is from 'crosses', which is no output of 'encoder' (recipes/demo.yaml:10:5); did you mean 'cross'?",
    ),
    "no output is named": (
        ("    outputs: [cross]\n", ""),
        "14:56: input 'cross' is from 'cross', which is no output of 'encoder' (recipes/demo.yaml:8:5)",
    ),
    "other sizes": (
        ("dynamic_axes: {length", "dynamic_axes: {batch: {max: 4}, length"),
        "16:20: axis 'batch' is 1 to 4; 'encoder', whose 'cross' the input 'cross' is, gives 1 to 8 (recipes/demo.yaml:3:16)",
    ),
    "no place of an output": (
        ("encoder.cross", "encoder"),
        "15:56: dummy_inputs.cross.from is 'encoder'; expected a string of the form COMPONENT.OUTPUT",
    ),
}


def test_components_in_a_circle_are_reported_once(project):
    text = CONNECTED.replace(
        "high: 10}}\n    outputs", "high: 10, from: decoder.out}}\n    outputs"
    )
    text = text.replace("    opset: 18\n", "    opset: 18\n    outputs: [out]\n")
    assert project.faults(text) == [
        "recipes/demo.yaml:15:56: components are in a circle: encoder <- decoder <- encoder"
    ]


@pytest.mark.parametrize("slip", DISCONNECTED)
def test_an_input_that_no_output_fits_is_reported_at_its_line_with_the_others(project, slip):
    (old, new), fault = DISCONNECTED[slip]
    assert CONNECTED.count(old) == 1
    assert project.faults(CONNECTED.replace(old, new)) == [f"recipes/demo.yaml:{fault}"]
