"""The graph, its order, and the families of what it delivers."""

import ast
from pathlib import Path
from typing import get_args

import pytest

from onnxbuild.core.errors import BuildError
from onnxbuild.core.graph import FAMILIES, Deliverable, Graph, OutputRef, topological
from onnxbuild.onnxkit.loaders.script import Runtime
from onnxbuild.release_format.bundles import SECTIONS
from tests.fakes.world import graph, step

PACKAGE = Path(__file__).parents[2] / "onnxbuild"


def test_each_bundle_of_a_release_has_a_section_of_its_own():
    bundles = [each for each in FAMILIES.values() if each.runtime]
    assert sorted(each.family.name for each in SECTIONS) == sorted(each.name for each in bundles)
    assert set(get_args(Runtime)) == {each.runtime for each in bundles}


def test_one_family_alone_is_portable_and_one_is_for_people():
    assert [each.name for each in FAMILIES.values() if each.is_portable] == ["variant"]
    assert [each.name for each in FAMILIES.values() if each.is_page] == ["report"]


def compared(tree: ast.AST) -> list[int]:
    """Lines that compare a family with a text, or with a constant, instead of asking it."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute):
            other = node.comparators[0]
            is_variable = isinstance(other, ast.Name) and other.id.islower()
            is_none = isinstance(node.ops[0], ast.Is | ast.IsNot)
            if node.left.attr == "family" and not (is_variable or is_none):
                found.append(node.lineno)
    return found


def test_a_comparison_is_found():
    assert compared(ast.parse("each.family == 'report'")) == [1]


@pytest.mark.slow
def test_all_code_asks_a_family_and_knows_none_by_name():
    found = {
        (path.relative_to(PACKAGE).as_posix(), line)
        for path in PACKAGE.rglob("*.py")
        for line in compared(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == set()


def test_each_step_follows_its_inputs_and_ties_keep_the_order_given():
    steps = [step("d", "b", "c"), step("z"), step("c", "a"), step("b", "a"), step("a"), step("y")]
    assert list(topological(steps)) == ["a", "b", "c", "d", "z", "y"]


def test_a_cycle_is_named_step_by_step():
    steps = [step("a", "d"), step("b", "a"), step("c", "b"), step("d", "c")]
    with pytest.raises(BuildError) as caught:
        topological(steps)
    assert caught.value.what == "dependency cycle: a -> d -> c -> b -> a"


def test_an_input_that_no_step_makes_is_named_with_who_needs_it():
    with pytest.raises(BuildError, match=r"^'b' needs 'gone', which no step makes$"):
        topological([step("a"), step("b", "a", "gone")])


def test_a_long_chain_needs_no_deep_stack():
    count = 20_000
    steps = [step(f"s{n}", *([f"s{n + 1}"] if n + 1 < count else [])) for n in range(count)]
    assert next(iter(topological(steps))) == f"s{count - 1}"


def _view(name: str, *parts: tuple[str, str]) -> Deliverable:
    return Deliverable("r", name, tuple((OutputRef(step, "out"), file) for step, file in parts))


def test_pruning_keeps_targets_and_what_they_need():
    whole = graph(step("a"), step("b", "a"), step("c", "a"), step("d", "b"))
    assert list(whole.pruned(["d"]).steps) == ["a", "b", "d"]
    assert list(whole.pruned(["c", "a"]).steps) == ["a", "c"]


def test_pruning_keeps_a_view_whose_bundle_remains_with_the_parts_that_do():
    views = (_view("one", ("p", ""), ("m", "m.json")), _view("two", ("q", "")))
    pruned = graph(step("p"), step("q"), step("m"), views=views).pruned(["p"])
    assert pruned.deliverables == (_view("one", ("p", "")),)


def test_an_alias_stands_for_the_step_that_it_equals():
    merged = Graph({"a": step("a"), "b": step("b", "a")}, {"x": "a", "y": "b"})
    assert merged.resolve("x") == "a"
    assert set(merged.names()) == {"a", "b", "x", "y"}
    pruned = merged.pruned(["x"])
    assert list(pruned.steps) == ["a"]
    assert pruned.aliases == {"x": "a"}
    with pytest.raises(KeyError):
        merged.pruned(["gone"])
