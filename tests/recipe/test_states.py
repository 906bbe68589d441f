"""`state` stands for inputs and outputs of the graph."""

from onnxbuild.core.params import to_json
from onnxbuild.core.recipe import DummyInput
from onnxbuild.core.state import Growth, growth_of
from tests.recipe.conftest import BASE

RECIPE = """\
version: 1
name: demo
model: models/model.py:load
dummy_inputs:
  ids: {dtype: int64, shape: [batch, sequence], high: 9}
  mask: {dtype: int64, shape: [batch, past + sequence], mask: left}
  positions: {dtype: int32, shape: [batch, sequence], arange: past}
state:
  past:
    each: {layer: 2, part: [key, value]}
    shape: [batch, 2, past, 8]
outputs: [logits]
dynamic_axes:
  batch: {min: 1, max: 4, example: 2}
  sequence: {min: 1, max: 8, example: 3}
  past: {min: 0, max: 16, example: 5}
"""


def test_each_tensor_of_a_state_is_an_input_and_an_output_in_order(project):
    recipe = project.recipe(RECIPE)
    names = ["0.key", "0.value", "1.key", "1.value"]
    assert [each.name for each in recipe.inputs[3:]] == [f"past.{name}" for name in names]
    assert recipe.outputs == ("logits", *(f"present.{name}" for name in names))
    shape = ("batch", 2, "past", 8)
    growth = Growth("past", "sequence")
    first = DummyInput("past.0.key", "float32", shape, fed_by="present.0.key", growth=growth)
    assert recipe.inputs[3] == first
    (state,) = recipe.model.state
    assert (state.parameter, state.outputs) == ("past", recipe.outputs[1:])
    assert [dict(each.of) for each in state.tensors][1] == {"layer": 0, "part": "value"}


def test_patterns_type_and_order_of_a_state_are_what_is_written(project):
    written = """{
      each: {part: [k, v], layer: [0, 3]}, input: "c/{layer}/{part}", output: "n.{part}.{layer}", dtype: float16,
      shape: [batch, past +  sequence, 8], update: replaced}"""
    start, end = RECIPE.index("    each"), RECIPE.index("outputs")
    text = f"{RECIPE[:start].rstrip()} {written}\n{RECIPE[end:]}"
    recipe = project.recipe(text.replace("[batch, past + sequence], mask", "[batch, past], mask"))
    state = recipe.inputs[3:]
    assert [each.name for each in state] == ["c/0/k", "c/3/k", "c/0/v", "c/3/v"]
    assert [each.fed_by for each in state] == ["n.k.0", "n.k.3", "n.v.0", "n.v.3"]
    assert (state[0].dtype, state[0].shape) == ("float16", ("batch", "past + sequence", 8))


def test_two_states_of_one_parameter_are_one_list_and_a_constant_one_has_no_output(project):
    cross = """\
  cross:
    parameter: past
    each: {layer: 1, part: [cross_key]}
    shape: [batch, 2, past, 8]
    update: constant
outputs"""
    recipe = project.recipe(RECIPE.replace("outputs", cross))
    (state,) = recipe.model.state
    assert [each.input for each in state.tensors][-2:] == ["past.1.value", "past.0.cross_key"]
    assert recipe.inputs[-1].fed_by == ""
    assert len(recipe.outputs) == 5


def test_a_state_in_place_says_so_in_its_inputs_alone(project):
    recipe = project.recipe(RECIPE.replace("past, 8]", "past, 8]\n    update: in_place"))
    plain = project.recipe(RECIPE)
    assert all(each.in_place for each in recipe.inputs[3:])
    assert to_json(recipe.inputs[3])["growth"]["in_place"] is True
    assert "in_place" not in to_json(plain.inputs[3])["growth"]
    assert (recipe.model, recipe.outputs) == (plain.model, plain.outputs)


def test_a_state_in_place_needs_an_input_that_says_how_much_of_the_buffer_is_used(project):
    text = RECIPE.replace("past, 8]", "past, 8]\n    by: sequence\n    update: in_place")
    (fault,) = project.faults(
        text.replace("past + sequence], mask: left", "sequence], mask: left")
    )
    assert "no input says how much of the buffer is in use" in fault


def test_a_recipe_without_state_has_the_keys_that_it_had(project):
    recipe = project.recipe(BASE)
    assert "state" not in to_json(recipe.model)
    assert all({"arange", "fed_by"}.isdisjoint(to_json(each)) for each in recipe.inputs)


def test_a_state_grows_by_what_a_sum_names_with_it():
    shape = ("batch", 2, "past", 8)
    ids = ("batch", "sequence")
    assert growth_of(shape, [ids, ("batch", "past + sequence")]) == Growth("past", "sequence")
    assert growth_of(shape, [ids, ("batch", "sequence + past")]) == Growth("past", "sequence")
    assert growth_of(shape, [ids]) == Growth("past", "sequence")
    assert growth_of(("batch", 2, 3), [ids]) is None
    assert growth_of(("batch", "heads", "past"), [ids]) is None
    two = [ids, ("batch", "pixels")]
    assert growth_of(shape, two) is None
    assert growth_of(shape, two, "sequence") == Growth("past", "sequence")
    assert growth_of(shape, [ids, ("batch", "past + sequence")], "pixels") is None


def test_texts_are_measured_of_a_model_with_a_state_alone(project):
    (fault,) = project.faults(f"{BASE}benchmark: {{tokens: 4}}\n")
    assert "benchmark.tokens can't continue prompts with this model: it has no `state`" in fault
    project.recipe(f"{BASE}benchmark: {{tokens: 0}}\n")
    project.recipe(f"{RECIPE}benchmark: {{tokens: 4}}\n")
