"""The words for what a schema takes, and for what to type instead of a value that it refuses."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from onnxbuild.document.faults import choices, nearest, show
from onnxbuild.recipe.parts.keys import PATTERN_WORDS
from onnxbuild.recipe.schema.aliases import meaning
from onnxbuild.recipe.schema.forms import Forms
from onnxbuild.recipe.schema.json_schema import Schema
from onnxbuild.recipe.schema.quantities import quantity, unit_of

_TYPES = {
    "string": "a string", "integer": "an integer", "number": "a number", "array": "a list",
    "boolean": "true or false", "object": "a mapping", "null": "nothing",
}  # fmt: skip
_WORDS = {
    "true": "yes on y True TRUE Yes YES On ON",
    "false": "no off n False FALSE No NO Off OFF",
}
_OF_THE_USER = ("data", "metric")
"""Keys of sections that do nothing without them."""

_BOOLEAN_WORDS = {word: value for value, words in _WORDS.items() for word in words.split()}


class Phrases:
    """Phrases on schemas.

    Args:
        forms: The forms of values that these take.
    """

    def __init__(self, forms: Forms) -> None:
        self._forms = forms

    def fix(self, found: object, schema: Schema, key: str = "") -> str:
        """Return the fix to type instead of `found`.

        Args:
            found: The value.
            schema: Of its place.
            key: The last key of its path, which may name a unit.
        """
        types = set(self._forms.types(schema))
        if found is None:
            return f"{self._mapping_fix(found=True, schema=schema) or 'write a value'}, or remove the key"
        if isinstance(found, list):
            found = [nested(each) for each in found]
        if isinstance(found, list) and len(found) == 1 and self._forms.takes(found[0], schema):
            return f"write `{inline(found[0])}`"
        if "boolean" in types and isinstance(found, str) and found in _BOOLEAN_WORDS:
            return f"write `{_BOOLEAN_WORDS[found]}`"
        if types & {"integer", "number"} and (fix := self._number(found, schema, key)):
            return fix
        if isinstance(found, str) and read_number(found) in schema.get("enum", ()):
            return f"write `{read_number(found)}`"
        pattern = schema.get("pattern")
        if pattern and isinstance(found, str) and re.search(pattern, mended(found)):
            return f"write `{mended(found)}`"
        if "const" in schema:
            return f"write `{schema['const']}`"
        if isinstance(found, (bool, int, float)) and self._forms.takes_as_text(found, schema):
            return f'quote it: `"{show(found)}"`'
        text = between_brackets(found) if isinstance(found, str) else found
        if "array" in types and not isinstance(found, (dict, list)) and self._items(text, schema):
            return f"write `[{text}]`"
        if "array" in types and isinstance(found, dict) and found:
            return self._list_fix(found, schema)
        return self._mapping_fix(found, schema) or f"write {self.expected(schema)}"

    def _number(self, found: object, schema: Schema, key: str) -> str:
        """The number that is meant, by a text with a unit, a percent sign or separators, too; empty if none is."""
        if (plain := _number(found, schema)) is not None:
            return f"write `{plain}`"
        number = quantity(found, key) if isinstance(found, str) else None
        if number is None or not math.isfinite(number):
            return ""
        number = int(number) if number.is_integer() else number
        if not self._forms.takes(number, schema) or not self._forms.is_within_bounds(
            number, schema
        ):
            return ""
        unit = unit_of(key)
        return f"write `{number}`" + (f", in {unit}" if unit else "")

    def _items(self, found: object, schema: Schema) -> bool:
        """Whether a list takes a value, or each part of a text between commas, as an item."""
        items = self._forms.items(schema)
        parts = (
            [read_number(each) for each in found.split(",")] if isinstance(found, str) else [found]
        )
        return all(self._forms.takes(each, items) for each in parts)

    def _list_fix(self, found: Mapping[str, object], schema: Schema) -> str:
        """A mapping in place of a list: its values by number, one item of it, or its keys are the items."""
        items = self._forms.items(schema)
        values = list(found.values())
        if all(key.isdigit() for key in found) and all(
            self._forms.takes(v, items) for v in values
        ):
            return f"write `{inline(values)}`"
        if all(self._forms.takes(key, items) for key in found):
            return f"write `[{', '.join(found)}]`"
        if self._forms.takes(found, items) and all(
            isinstance(each, (int, str)) for each in values
        ):
            return f"write `[{inline(found)}]`"
        return f"write {self.expected(schema)}"

    def _mapping_fix(self, found: object, schema: Schema) -> str:
        """The mapping that a switch, a list or one value stands for; empty if none is expected."""
        resolved = self._forms.resolved(schema)
        items = found if isinstance(found, list) else []
        if "object" in self._forms.types(resolved) and items and all(map(_is_mapping, items)):
            merged = {key: value for each in items for key, value in each.items()}
            if len(merged) == sum(map(len, items)) and self._forms.knows(merged, resolved):
                return f"write `{inline(merged)}`"
        properties = resolved.get("properties", {})
        if not properties:
            return ""
        if found is False:
            return "remove it"
        if found is True and not resolved.get("required"):
            asked = [f"{key}: FILE.py:CALLABLE" for key in _OF_THE_USER if key in properties]
            return f"write `{{{', '.join(asked)}}}`" + ("" if asked else ": the defaults")
        keys = [found] if isinstance(found, str) else items
        if keys and all(isinstance(each, str) and each in properties for each in keys):
            values = ["{}" if self._forms.takes({}, properties[each]) else "..." for each in keys]
            pairs = ", ".join(f"{key}: {each}" for key, each in zip(keys, values, strict=True))
            return (
                f"write a mapping, such as `{{{pairs}}}`"
                if "..." in values
                else f"write `{{{pairs}}}`"
            )
        first = next(iter(properties))
        wanted = set(self._forms.types(properties[first]))
        is_first = (
            (wanted & {"number", "integer"} and type(found) in (int, float))
            or ("string" in wanted and isinstance(found, str))
        )  # fmt: skip
        if is_first and set(resolved.get("required", ())) <= {first}:
            return f"write `{{{first}: {found}}}`"
        return f"write a mapping, such as `{{{first}: ...}}`"

    def expected(self, schema: Schema) -> str:
        """Return the values that `schema` accepts, in words."""
        schema = self._forms.resolved(schema)
        if "anyOf" in schema:
            return ", or ".join(dict.fromkeys(map(self.expected, schema["anyOf"])))
        if "enum" in schema:
            return choices(schema["enum"])
        if "const" in schema:
            return show(schema["const"]).strip("'")
        if schema.get("type") == "string" and "title" in schema:
            return str(schema["title"])
        types = schema["type"]
        if isinstance(types, list) and "title" in schema:
            return str(schema["title"])
        names = [_TYPES[each] for each in ([types] if isinstance(types, str) else types)]
        return " or ".join(names) + _bounds(schema)

    def enumerated(self, schema: Schema) -> Iterator[str]:
        """The words that `schema` takes."""
        schema = self._forms.resolved(schema)
        for branch in schema.get("anyOf", ()):
            yield from self.enumerated(branch)
        yield from (value for value in schema.get("enum", ()) if isinstance(value, str))

    def wants_other_type(self, schema: Schema) -> bool:
        """Return whether a string's very type is what may be wrong with it."""
        types = set(self._forms.types(schema))
        takes_strings = "string" in types or any(self.enumerated(schema))
        return "boolean" in types or not takes_strings


def meant(found: object, known: list[str]) -> str:
    """The one of `known` that `found` seems to mean: by its case, as a word of others, by its letters."""
    if not isinstance(found, str):
        return ""
    return meaning(found, known) or nearest(found, known)


def inline(value: object) -> str:
    """A value as YAML has it within a line.

    Args:
        value: Of scalars, lists and mappings.
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {inline(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return str(value) if isinstance(value, str) else show(value)


def nested(item: object) -> object:
    """Return an item of a list as it is meant: the keys next to a first one without a value are below that one."""
    if not isinstance(item, dict) or len(item) == 1 or next(iter(item.values()), "") is not None:
        return item
    key, *others = item
    return {key: {each: item[each] for each in others}}


def between_brackets(text: str) -> str:
    """Return what stands between the brackets of a list or of a tuple, as Python has it, or of a shape with `x` or blanks for commas."""
    text = re.sub(r"^-\s*(?=[A-Za-z_])", "", text)
    inner = re.sub(r"^\((.*?),?\)$|^\[(.*)\]$", lambda found: found[1] or found[2] or "", text)
    return re.sub(r"\s+x\s+|(?<=\d)x(?=\d)|(?<=\w)[ ]+(?=\w)", ", ", inner)


def mended(name: str) -> str:
    """A name with what no name may hold replaced."""
    return re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")


def _number(found: object, schema: Schema) -> str | None:
    """The number that is meant: by a string, by a float without fraction, or the nearest bound."""
    if isinstance(found, str) and re.fullmatch(r"[-+]?[0-9_]{1,18}", found, re.ASCII):
        digits = found.replace("_", "")
        found = int(digits) if digits.strip("+-") else None
    if isinstance(found, str) and schema.get("type") == "number":
        found = read_number(found)
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return None
    number = int(found) if isinstance(found, int) or found.is_integer() else found
    number = max(number, schema.get("minimum", number))
    number = min(number, schema.get("maximum", number))
    return str(number) if isinstance(number, int) or schema.get("type") == "number" else None


def read_number(text: str) -> object:
    """The number that a text is, finite; the text without blanks around it if it is none."""
    plain = text.strip()
    if re.fullmatch(r"[-+]?[0-9]{1,18}", plain, re.ASCII):
        return int(plain)
    is_float = re.fullmatch(
        r"[-+]?[0-9]{0,18}\.?[0-9]{1,18}([eE][-+]?[0-9]{1,2})?", plain, re.ASCII
    )
    return float(plain) if is_float else plain


def _is_mapping(value: object) -> bool:
    return isinstance(value, dict)


def _bounds(schema: Schema) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None:
        return f" from {least} to {most}"
    if least is not None:
        return f" of at least {least}"
    if most is not None:
        return f" of at most {most}"
    if "maxProperties" in schema:
        return " with one entry"
    if schema.get("minItems") or schema.get("minProperties"):
        return " with at least one entry"
    if "minLength" in schema:
        return " that is not empty"
    pattern = schema.get("pattern")
    return f" of {PATTERN_WORDS.get(pattern, pattern)}" if pattern else ""
