"""What completes a command line: in this process, on recipes as people write them."""

import subprocess
import sys

import click
import pytest

from onnxbuild.cli.group import cli
from onnxbuild.completion.candidates import candidates_for
from onnxbuild.terminal.at_a_glance import VERBS

RECIPE = """\
version: 1
name: tiny  # as `run` prints it
model: {entrypoint: models/tiny.py:load}
dummy_inputs:
  input: {dtype: float32, shape: [batch, 4]}
outputs: [logits]
dynamic_axes:
  batch: {min: 1, max: 8, example: 2}
quantization: {fp32: none, int8: dynamic}
"""
MODEL = """\
raise SystemExit("completion ran the model's code")


def load():
    return None
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    root = tmp_path / "project"
    (root / "recipes/models").mkdir(parents=True)
    (root / "pyproject.toml").write_text("")
    (root / "recipes/tiny.yaml").write_text(RECIPE)
    (root / "recipes/models/tiny.py").write_text(MODEL)
    (root / "recipes/no_recipe.yaml").write_text("a: 1\n")
    monkeypatch.setenv("ONNXBUILD_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(root)
    return root


def values(line):
    return [each.value for each in candidates_for(cli, line)]


def test_the_first_word_is_a_verb(project):
    assert values("onnxbuild ") == list(VERBS)
    assert values("onnxbuild re") == ["report", "reproduce", "release"]


def test_all_options_of_every_verb_are_known(project):
    for verb in VERBS:
        command = cli.get_command(click.Context(cli), verb)
        if not isinstance(command, click.Group):
            longs = {name for param in command.params for name in param.opts if "--" in name}
            assert longs - {"--candidates"} <= set(values(f"onnxbuild {verb} --"))
    assert "--candidates" not in values("onnxbuild completion --")


def test_both_sides_of_a_comparison_are_variants_files_or_recipes(project):
    assert {"tiny:", "recipes/"} <= set(values("onnxbuild diff "))
    assert values("onnxbuild diff tiny:f") == ["tiny:fp32"]
    assert values("onnxbuild diff HEAD~1 tiny:i") == ["tiny:int8"]
    assert values("onnxbuild diff HEAD~1 recipes/ti") == ["recipes/tiny.yaml"]
    assert values("onnxbuild diff HEAD~1 HEAD tiny:i") == ["tiny:int8"]


def test_values_of_a_choice(project):
    assert values("onnxbuild graph --format ") == ["mermaid", "dot"]
    assert values("onnxbuild graph --format=d") == ["--format=dot"]
    assert values("onnxbuild completion ") == ["bash", "zsh", "fish"]


def test_recipes_are_files_that_look_like_recipes(project):
    assert values("onnxbuild run ") == ["recipes/tiny.yaml", "recipes/"]
    assert values("onnxbuild run recipes/") == [
        "recipes/tiny.yaml", "recipes/models/", "recipes/no_recipe.yaml",
    ]  # fmt: skip
    assert values("onnxbuild run ./re") == ["./recipes/"]


def test_only_takes_variants_and_steps_of_the_recipes_on_the_line(project):
    assert values("onnxbuild run recipes/tiny.yaml --only ")[:3] == ["fp32", "int8", "export"]
    assert values("onnxbuild run recipes/tiny.yaml --only int8/q") == ["int8/quantize"]
    assert values("onnxbuild run --only=int8/q recipes/tiny.yaml --only=f")[0] == "--only=fp32"
    assert values("onnxbuild run --only ") == []


def test_a_step_is_named_with_its_recipe(project):
    assert values("onnxbuild why ") == ["tiny:"]
    assert "tiny:int8/quantize" in values("onnxbuild why tiny:")
    assert values("onnxbuild why tiny:int8/qu") == ["tiny:int8/quantize"]
    assert values("onnxbuild why recipes/t") == ["recipes/tiny.yaml:"]
    assert values("onnxbuild log recipes/tiny.yaml:exp") == ["recipes/tiny.yaml:export"]


def test_a_variant_is_named_with_its_recipe(project):
    assert values("onnxbuild diagnose tiny:") == ["tiny:fp32", "tiny:int8"]
    assert "recipes/" in values("onnxbuild inspect ")
    assert "tiny:" in values("onnxbuild inspect ")


@pytest.mark.parametrize("line", ["", "onnxbuild run -- --"])
def test_what_is_nothing_completes_to_nothing(project, line):
    try:
        assert values(line) == []
    except ValueError:
        assert "no-such-verb" in line


def test_an_edited_recipe_is_read_again_and_a_broken_one_is_as_it_was(project):
    recipe = project / "recipes/tiny.yaml"
    assert values("onnxbuild diagnose tiny:") == ["tiny:fp32", "tiny:int8"]
    recipe.write_text(RECIPE.replace("int8: dynamic", "half: fp16"))
    assert values("onnxbuild diagnose tiny:") == ["tiny:fp32", "tiny:half"]
    recipe.write_text(RECIPE.replace("outputs", "outptus"))
    assert values("onnxbuild diagnose tiny:") == ["tiny:fp32", "tiny:half"]


def test_a_cache_that_cannot_be_written_costs_time_alone(project, monkeypatch):
    (project / "in_the_way").write_text("")
    monkeypatch.setenv("ONNXBUILD_CACHE", str(project / "in_the_way"))
    assert values("onnxbuild diagnose tiny:") == ["tiny:fp32", "tiny:int8"]


def test_no_plug_in_of_the_project_is_run(project):
    (project / "pyproject.toml").write_text('[tool.onnxbuild]\nplugins = ["own.py"]\n')
    (project / "own.py").write_text("raise SystemExit('completion ran a plug-in')\n")
    assert values("onnxbuild diagnose tiny:") == ["tiny:fp32", "tiny:int8"]


def test_nothing_is_written_into_the_project(project):
    before = sorted(project.rglob("*"))
    values("onnxbuild why tiny:")
    values("onnxbuild run recipes/tiny.yaml --only ")
    assert sorted(project.rglob("*")) == before


def test_names_and_kept_steps_load_neither_yaml_nor_features(project):
    values("onnxbuild why tiny:")
    program = (
        "import sys\n"
        "from onnxbuild.cli.main import run_command\n"
        "run_command(['completion', '--candidates', sys.argv[1]])\n"
        "heavy = {'yaml', 'jinja2', 'onnxbuild.catalog', 'onnxbuild.building.request'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    for line, expected in (
        ("onnxbuild why t", "tiny:"),
        ("onnxbuild why tiny:int8/q", "quantize"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program, line], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout
