"""JSON Schemas of what verbs print, made of the types that the code builds it with."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from typing import Any

from onnxbuild.core.json_schema import Schema, TypeSchemas

_ATTRIBUTE = re.compile(r"(\w+): (.*)")


class OutputSchemas(TypeSchemas):
    """Writes schemas of what verbs print: records are TypedDicts, or dataclasses of events."""

    def record(self, kind: Any) -> Schema:
        """The schema of a record, closed, with its documentation."""
        described = inspect.cleandoc(kind.__doc__ or "")
        helps = _attributes(described)
        if dataclasses.is_dataclass(kind):
            hints = typing.get_type_hints(kind)
            fields = {each.name: hints[each.name] for each in dataclasses.fields(kind)}
            required = ["type", *fields]
            properties: dict[str, Any] = {"type": {"const": vars(kind)["type"]}}
        elif typing.is_typeddict(kind):
            fields = typing.get_type_hints(kind)
            required = [name for name in fields if name in kind.__required_keys__]
            properties = {}
        else:
            return super().record(kind)
        for name, each in fields.items():
            found = self.of(each)
            properties[name] = {**found, "description": helps[name]} if name in helps else found
        return {
            "type": "object",
            "description": described.partition("\n")[0],
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }


def _attributes(text: str) -> dict[str, str]:
    """Field -> its description, of a docstring's section `Attributes`."""
    found: dict[str, str] = {}
    name = ""
    for line in text.partition("Attributes:\n")[2].splitlines():
        indent = len(line) - len(line.lstrip())
        start = _ATTRIBUTE.fullmatch(line.strip())
        if indent == 4 and start:  # noqa: PLR2004 - of a section's entries
            name = start[1]
            found[name] = start[2]
        elif line.strip() and name:
            found[name] += f" {line.strip()}"
        else:
            break
    return found
