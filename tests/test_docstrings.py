"""Docstrings begin with a verb or with the thing's name, in one sentence that one can read alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.known_names import parsed

PACKAGE = Path(__file__).parents[1] / "onnxbuild"

QUESTIONS = frozenset(
    [
        "All",
        "As",
        "By",
        "For",
        "How",
        "In",
        "It",
        "Of",
        "That",
        "There",
        "Those",
        "What",
        "Whatever",
        "When",
        "Where",
        "Which",
        "Who",
        "Whoever",
        "Whose",
        "Why",
    ]
)
"""First words of riddles: the thing itself is named later, or never."""

SHIPPED = {"onnxkit/loaders/golden_run.py"}
"""Files that packages contain as they are: another word in them is another package."""


def first_lines(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, first line) of the docstrings of a module, its classes, functions and documented names."""
    for node in ast.walk(tree):
        if not isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ):
            continue
        names = (None, *node.body)
        for before, each in zip(names, node.body, strict=False):
            documents = before is None or isinstance(before, ast.Assign | ast.AnnAssign)
            if (
                documents
                and isinstance(each, ast.Expr)
                and isinstance(each.value, ast.Constant)
                and isinstance(each.value.value, str)
            ):
                yield each.lineno, (each.value.value.splitlines() or [""])[0]


def riddles(tree: ast.Module) -> list[tuple[int, str]]:
    """Return (line, first line) of the docstrings that begin with one of QUESTIONS."""
    return [
        (line, text)
        for line, text in first_lines(tree)
        if (text.split() or [""])[0].rstrip(",.:;") in QUESTIONS
    ]


def test_docstrings_begin_with_a_verb_or_a_name():
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {text}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).as_posix() not in SHIPPED
        for line, text in riddles(parsed(path))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "line"),
    [('"""What a build gave."""', 1), ('async def f():\n    """As `g`, later."""', 2)],
)
def test_a_riddle_is_found(source, line):
    assert [at for at, _ in riddles(ast.parse(source))] == [line]


def test_a_verb_a_noun_and_a_plain_string_are_none():
    source = 'def f():\n    """Return all."""\n    "What is no docstring"\nX = 1\n"""Size of a file."""\n'
    assert riddles(ast.parse(source)) == []
