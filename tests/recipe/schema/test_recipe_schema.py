import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from onnxbuild.catalog import MODES, SECTIONS
from onnxbuild.core.params import from_json, key_of
from onnxbuild.recipe.schema.lean_jsonschema import Draft202012Validator
from onnxbuild.recipe.schema.recipe_schema import recipe_schema, rendered_schema, schema_text
from onnxbuild.recipe.schema.reference_page import updated_page
from tests.recipe.test_load import FULL

ROOT = Path(__file__).parents[3]


def test_the_committed_schema_is_the_one_of_the_code():
    committed = (ROOT / "schemas/recipe.schema.json").read_text()
    assert committed == schema_text(), "run `onnxbuild schema --write schemas/recipe.schema.json`"
    assert json.loads(committed) == recipe_schema()


def test_the_reference_page_is_the_one_of_the_code():
    page = (ROOT / "docs/recipe.md").read_text()
    assert page == updated_page(page), "write docs/recipe.md anew with reference.updated_page"


def test_both_forms_are_valid_schemas():
    Draft202012Validator.check_schema(recipe_schema())
    Draft202012Validator.check_schema(rendered_schema())


@pytest.mark.parametrize(
    "text", [FULL, 'version: 1\nextends: base.yaml\nopset: "{{ o }}"\nvars: {o: 18}\n']
)
def test_an_editor_accepts_what_the_loader_accepts(text):
    errors = list(Draft202012Validator(recipe_schema()).iter_errors(yaml.safe_load(text)))
    assert errors == []


@pytest.mark.parametrize(
    "text",
    [
        "version: 1\nextends: b.yaml\nopst: 18\n",
        "version: 1\nextends: b.yaml\nquantization: {i: {mode: dynamic, per_chanel: true}}\n",
    ],
)
def test_an_editor_refuses_what_the_loader_refuses(text):
    assert list(Draft202012Validator(recipe_schema()).iter_errors(yaml.safe_load(text)))


def test_every_property_is_described():
    def undescribed(schema, path):
        for key, below in schema.get("properties", {}).items():
            if not below.get("description"):
                yield f"{path}.{key}"
            yield from undescribed(below, f"{path}.{key}")

    schema = recipe_schema()
    assert list(undescribed(schema, "")) == []
    for name, definition in schema["$defs"].items():
        assert list(undescribed(definition, name)) == []


def keys_of(schema: Any, definitions: dict[str, Any]) -> set[str]:
    """The keys that a value of this schema may have, in one of its forms."""
    if "$ref" in schema:
        return keys_of(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    forms = [form for word in ("anyOf", "oneOf", "allOf") for form in schema.get(word, [])]
    found = set(schema.get("properties", {}))
    return found.union(*(keys_of(form, definitions) for form in forms))


def test_every_option_of_every_kind_is_in_the_schema():
    schema = rendered_schema()
    for name, section in SECTIONS.items():
        keys = keys_of(schema["properties"][name], schema["$defs"])
        assert {key_of(field) for field in dataclasses.fields(section.options)} <= keys
    for mode in MODES.values():
        known = set(schema["$defs"][f"mode_{mode.name}"]["properties"])
        names = (
            {field.name for field in dataclasses.fields(mode.options)} if mode.options else set()
        )
        assert names < known


def defaults_in(schema: object, at: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Each part of a schema that has a default, and where it stands."""
    if isinstance(schema, dict):
        if "default" in schema:
            yield at, schema
        for key, value in schema.items():
            yield from defaults_in(value, f"{at}/{key}")
    elif isinstance(schema, list):
        for number, value in enumerate(schema):
            yield from defaults_in(value, f"{at}/{number}")


@pytest.mark.parametrize("schema", [recipe_schema(), rendered_schema()])
def test_every_default_in_the_schema_is_valid_there(schema):
    found = dict(defaults_in(schema))
    assert len(found) > 100
    for at, part in found.items():
        validator = Draft202012Validator({**part, "$defs": schema["$defs"]})
        assert [error.message for error in validator.iter_errors(part["default"])] == [], at


def test_writing_a_default_out_changes_no_option():
    for mode in (each for each in MODES.values() if each.options):
        described = rendered_schema()["$defs"][f"mode_{mode.name}"]["properties"]
        names = {field.name for field in dataclasses.fields(mode.options)}
        written = {
            name: part["default"]
            for name, part in described.items()
            if name in names and "default" in part
        }
        assert from_json(mode.options, written) == from_json(mode.options, {}), mode.name
