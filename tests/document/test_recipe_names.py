"""The name of a recipe is read back at one place."""

import ast
from pathlib import Path

import pytest

from onnxbuild.document.recipe_names import RecipeName, TypedName

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
        ("whisper@encoder", RecipeName("whisper", "encoder")),
    ],
)
def test_a_name_is_read_as_it_was_printed(text, name):
    assert RecipeName.parse(text) == name
    assert str(name) == text


def test_a_name_stands_for_all_that_have_its_parts():
    files = dict.fromkeys(
        f"w@{part},size={size}" for part in ("encoder", "decoder") for size in (8, 9)
    )
    files = {**dict.fromkeys(files, "w.yaml"), "w.cpp": "cpp.yaml"}
    meant = {
        "w": [0, 1, 2, 3],
        "w@encoder": [0, 1],
        "w@size=9": [1, 3],
        "w@size=9,decoder": [3],
        "decoder": [2, 3],
        "w@size=7": [],
        "w@encode": [],
        "w.cpp": [4],
    }
    found = {text: TypedName(text, "int8").recipes_of(files) for text in meant}
    assert found == {text: [list(files)[n] for n in numbers] for text, numbers in meant.items()}


def test_the_sibling_of_a_component_is_at_the_same_combination():
    sibling = RecipeName.parse("w@encoder,size=8,depth=2").sibling("decoder")
    assert str(sibling) == "w@decoder,size=8,depth=2"
    assert str(RecipeName.parse("w@encoder").sibling("decoder")) == "w@decoder"


@pytest.mark.slow
def test_no_other_code_takes_the_name_of_a_recipe_apart():
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value == "@"
    }
    assert found == {*OTHER_WORDS, "document/recipe_names.py"}
