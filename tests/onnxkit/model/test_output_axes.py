import pytest
from onnx import helper

from onnxbuild.onnxkit.model.inspect import dimensions
from onnxbuild.onnxkit.model.shapes import name_output_axes
from tests.onnxkit.models import model, value


def named(shape, *observed, largest=None):
    node = helper.make_node("Identity", ["x"], ["y"])
    made = model([node], [value("x", ["b", "s"])], [value("y", shape)])
    runs = [(sizes, [result]) for sizes, result in observed]
    name_output_axes(made, runs, ["b", "s"], largest or (lambda _: None))
    return dimensions(made.graph.output[0])


FIRST, SECOND = {"b": 2, "s": 5}, {"b": 3, "s": 7}


def test_a_dimension_that_follows_an_axis_gets_its_name():
    assert named(["Add_0", "Add_1", 4], (FIRST, (5, 2, 4)), (SECOND, (7, 3, 4))) == ["s", "b", 4]


def test_a_formula_is_kept_and_a_made_up_name_replaced():
    assert named(["2*b"], (FIRST, (4,)), (SECOND, (6,))) == ["2*b"]
    assert named(["Reshape_3_dim_0"], (FIRST, (4,)), (SECOND, (6,))) == ["y_dim_0"]


def test_a_size_that_the_graph_wrongly_fixes_is_set_right():
    assert named([2, 4], (FIRST, (2, 4)), (SECOND, (3, 4))) == ["b", 4]


@pytest.mark.parametrize("name", ["2*b*/ evil", "b; evil()", "b\\"])
def test_a_name_that_is_no_formula_is_replaced_though_an_axis_is_in_it(name):
    assert named([name], (FIRST, (4,)), (SECOND, (6,))) == ["y_dim_0"]


def first_three(axis):
    sizes = {**FIRST, axis: 100}
    return sizes, [(min(sizes["b"], 3), sizes["s"])]


def test_a_dimension_that_has_an_axis_size_only_up_to_a_limit_does_not_get_its_name():
    seen = (FIRST, (2, 5)), (SECOND, (3, 7))
    assert named(["K", "?"], *seen, largest=first_three) == ["y_dim_0", "s"]
    assert named(["Min(3, b)", "s"], *seen, largest=first_three) == ["Min(3, b)", "s"]


def test_a_name_that_the_graph_itself_gives_is_not_tried_at_the_maximum():
    def largest(axis):
        raise AssertionError(axis)

    assert named(["b", "s"], (FIRST, (2, 5)), (SECOND, (3, 7)), largest=largest) == ["b", "s"]
