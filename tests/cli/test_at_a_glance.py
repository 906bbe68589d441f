"""Short answers are given where a command line is plainly one, and left to click otherwise."""

import importlib

import pytest

from onnxbuild.building.glance import lint_lines, recalled_lint
from onnxbuild.terminal.at_a_glance import _FLAGS, _TAKING_VALUES, answer


@pytest.mark.parametrize("verb", _FLAGS)
def test_each_option_is_one_that_the_verb_has_and_takes_as_many_values(verb):
    command = importlib.import_module(f"onnxbuild.cli.{verb}").command
    options = {word: each for each in command.params for word in each.opts}
    assert all(options[word].is_flag for word in _FLAGS[verb])
    for word, name in _TAKING_VALUES[verb].items():
        assert (options[word].name, options[word].is_flag, options[word].nargs) == (name, False, 1)


@pytest.mark.parametrize(
    "words",
    [
        ("run",),
        ("run", "--jobs", "2", "tiny.yaml"),
        ("lint", "tiny.yaml", "--set"),
        ("run", "tiny.yaml"),
        ("run", "tiny\0.yaml"),
    ],
)
def test_what_is_not_plain_or_not_known_is_left_to_click(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert answer(words) is None


def test_lint_is_decided_again_where_less_memory_is_there_than_then():
    lint = lint_lines(["a note"], "ok: tiny (8 steps)", fits=True)
    assert recalled_lint({"lint": lint}) == (["a note"], "ok: tiny (8 steps)")
    assert recalled_lint({"lint": {**lint, "memory": lint["memory"] * 2}}) is None
    assert recalled_lint({"lint": lint_lines([], "ok: tiny (8 steps)", fits=False)}) is None
