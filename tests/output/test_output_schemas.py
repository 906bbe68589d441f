"""The schemas of what verbs print: one for each, as they are committed, closed and documented."""

import json
from pathlib import Path

import click
import pytest

from onnxbuild.cli.group import cli
from onnxbuild.core.errors import UsageError
from onnxbuild.output.verbs import OUTPUTS, file_name, output_schema, output_schema_text
from onnxbuild.recipe.schema.lean_jsonschema import Draft202012Validator

FOLDER = Path(__file__).parents[2] / "schemas" / "output"


def commands() -> dict[str, click.Command]:
    """Verb, or GROUP VERB -> its command."""
    found = {}
    context = click.Context(cli)
    for verb in cli.list_commands(context):
        command = cli.get_command(context, verb)
        if isinstance(command, click.Group):
            found |= {f"{verb} {name}": each for name, each in command.commands.items()}
        else:
            found[verb] = command
    del found["worker"]  # a server: it prints nothing that a program reads
    return found


def test_every_verb_prints_json_and_has_a_schema():
    found = commands()
    assert set(found) == set(OUTPUTS)
    without = [
        name for name, each in found.items()
        if not any("--json" in option.opts for option in each.params)
    ]  # fmt: skip
    assert without == []


@pytest.mark.parametrize("verb", OUTPUTS)
def test_a_schema_is_valid_committed_and_says_what_each_field_is(verb):
    schema = output_schema(verb)
    Draft202012Validator.check_schema(schema)
    assert (FOLDER / file_name(verb)).read_text() == output_schema_text(verb), "make golden"
    for name, record in schema["$defs"].items():
        assert record["additionalProperties"] is False
        assert record["description"]
        if name.endswith("Record"):
            said = {key for key, each in record["properties"].items() if "description" in each}
            assert said == set(record["properties"]), name


def test_there_is_no_schema_of_a_verb_that_is_gone():
    assert {path.name for path in FOLDER.iterdir()} == set(map(file_name, OUTPUTS))


def test_an_unknown_verb_is_named_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'cache stats'"):
        output_schema("cache stat")


def test_a_schema_refuses_what_no_verb_prints():
    validator = Draft202012Validator(output_schema("lint"))
    good = {"type": "lint", "recipes": ["a"], "steps": 3, "notes": []}
    assert validator.is_valid(good)
    assert not validator.is_valid({**good, "more": 1})
    assert not validator.is_valid({**good, "steps": "3"})
    assert not validator.is_valid({key: each for key, each in good.items() if key != "notes"})
    json.dumps(good)
