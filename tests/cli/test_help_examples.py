"""The help of each verb begins with an example that works where it is asked for."""

import shlex
import subprocess
import sys

import click
import pytest

from onnxbuild.cli.group import Verbs, cli
from onnxbuild.cli.main import run_command
from onnxbuild.terminal.at_a_glance import VERBS
from onnxbuild.terminal.examples import EXAMPLES, example_of
from tests.pseudo_terminal import terminal

QUICK = (
    "run",
    "plan",
    "why",
    "graph",
    "lint",
    "explain",
    "schema",
    "clean",
    "cache",
    "log",
    "lock",
)
OUTSIDE = {
    "run": "onnxbuild run recipes/bert.yaml",
    "why": "onnxbuild why bert:export",
    "diagnose": "onnxbuild diagnose bert:int8",
    "init": "mkdir first && cd first && onnxbuild init",
}
HERE = {
    "run": "onnxbuild run tiny.yaml",
    "why": "onnxbuild why tiny:export",
    "diagnose": "onnxbuild diagnose tiny:fp32",
    "init": "onnxbuild init models/tiny.py:load --name tiny-2",
}


def test_each_verb_has_an_example():
    assert set(VERBS) <= set(EXAMPLES)
    for name in EXAMPLES:
        verb, _, below = name.partition(" ")
        assert isinstance(cli, Verbs)
        command = cli.get_command(click.Context(cli), verb)
        assert command is not None
        assert not below or below in command.commands


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_begins_with_it_and_its_options_exist(cheap, verb, monkeypatch):
    seen = cheap(verb, "--help")
    first = seen.out.partition("\n")[0]
    monkeypatch.chdir(cheap.folder)
    assert (seen.code, first) == (0, f"Example: {example_of(verb)}")
    words = shlex.split(first.partition("onnxbuild ")[2])
    with click.Context(cli, info_name="onnxbuild") as context:
        command = cli.get_command(context, words[0])
        command.make_context(words[0], words[1:], parent=context)  # raises if it can't be parsed


@pytest.mark.parametrize("verb", HERE)
def test_it_names_a_recipe_of_the_project_or_else_any(cheap, verb, monkeypatch, tmp_path):
    assert cheap(verb, "--help").out.startswith(f"Example: {HERE[verb]}\n\nUsage: ")
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    assert example_of(verb) == OUTSIDE[verb]


def test_the_quick_ones_run_as_they_stand(cheap, monkeypatch):
    assert cheap.run().code == 0
    for verb in QUICK:
        monkeypatch.chdir(cheap.folder)
        words = shlex.split(example_of(verb))
        seen = cheap(*words[1:])
        assert seen.code == 0, (words, seen.err)


@pytest.mark.parametrize(
    ("quantization", "variant"),
    [
        ("quantization: {fp32: none, int8: dynamic}\n", "fp32"),
        ("quantization:\n  # smallest\n  int8:\n    mode: dynamic\n", "int8"),
    ],
)
def test_the_variant_is_one_that_the_recipe_has(tmp_path, monkeypatch, quantization, variant):
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "mine.yaml").write_text(
        f"version: 1\nname: 'mine'  # ours\n{quantization}opset: 18\n"
    )
    monkeypatch.chdir(tmp_path)
    assert example_of("diagnose") == f"onnxbuild diagnose mine:{variant}"


@pytest.mark.slow
def test_help_loads_no_catalog_and_no_yaml():
    code = (
        "import sys\nfrom onnxbuild.cli.main import run_command\n"
        "assert run_command(['run', '--help']) == 0\n"
        "heavy = {'onnxbuild.catalog', 'yaml', 'jinja2', 'jsonschema', 'torch', 'onnx', 'numpy', 'urllib3'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("verb", [*VERBS, "cache gc", "cache key", ""])
def test_the_help_of_a_verb_fits_on_a_terminal_and_begins_with_its_example(
    cheap, verb, monkeypatch
):
    words = [*verb.split(), "--help"]
    plain = cheap(*words)
    monkeypatch.chdir(cheap.folder)
    with terminal(80) as screen:
        assert run_command(words) == 0
    assert screen.broken == []
    assert screen.text.split() == plain.out.split()
    begin = f"Example: {HERE[verb]}\n\n" if verb in HERE else "Example: " if verb else "Usage: "
    assert screen.text.startswith(begin)
