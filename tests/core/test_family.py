"""What families of deliverables there are is said once."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import pytest

from onnxbuild.core.graph import FAMILIES
from onnxbuild.onnxkit.loaders.script import Runtime
from onnxbuild.release_format.bundles import SECTIONS

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
