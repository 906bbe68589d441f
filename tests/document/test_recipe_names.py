"""The name of a recipe is read back at one place."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from onnxbuild.document.recipe_names import RecipeName

PACKAGE = Path(__file__).parents[2] / "onnxbuild"
OTHER_WORDS = {
    "onnxkit/operators/opaque_nodes.py": "an operator and its version",
    "requirements.py": "a requirement with its address",
    "registry/reference.py": "a reference to a registry, with its digest",
    "cli/release.py": "the same",
    "release/release.py": "a title and a place, for people",
    "onnxkit/node/content.py": "a scope of npm",
    "cli/explain.py": "a combination among what was typed, or a key",
}
"""Where an `@` is no part of a recipe's name."""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("bert", RecipeName("bert")),
        ("bert@size=8,depth=2", RecipeName("bert", "size=8,depth=2")),
    ],
)
def test_a_name_is_read_as_it_was_printed(text, name):
    assert RecipeName.parse(text) == name
    assert str(name) == text


@pytest.mark.slow
def test_no_other_code_takes_the_name_of_a_recipe_apart():
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value == "@"
    }
    assert found == {*OTHER_WORDS, "document/recipe_names.py"}
