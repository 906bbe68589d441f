"""Files of packages that are written from templates, which lie in a folder of their format's room."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def rendered(room: str, template: str, **content: object) -> str:
    """Return the text of a template, which ends with one newline; a name that it lacks is an error.

    Filters: `json` gives a value as JSON, which is a literal of JavaScript, TypeScript and, for ASCII text,
    of Kotlin, Swift and C++; `python` gives a literal of Python, `protobuf` a string of its text form,
    `yaml` a value of YAML after its key.

    Args:
        room: The package that has a folder `templates`, as its `__package__` says.
        template: Name of a file there, which ends with `.j2`.
        **content: What it names.
    """
    text = resources.files(room).joinpath("templates", template).read_text(encoding="utf-8")
    return _environment().from_string(text).render(**content).rstrip("\n") + "\n"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, StrictUndefined

    made = Environment(  # noqa: S701 - sources and plain text; pages of HTML escape with `| e`
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    made.filters["json"] = _json
    made.filters["python"] = python_literal
    made.filters["protobuf"] = protobuf_string
    made.filters["yaml"] = yaml_value
    return made


def python_literal(value: object) -> str:
    """Return a literal of Python in ASCII, with double quotes around strings."""
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, tuple):
        inside = ", ".join(map(python_literal, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return repr(value)


def protobuf_string(value: str) -> str:
    """Return a string as protobuf's text form has it, whose escapes JSON's are, too."""
    return json.dumps(value, ensure_ascii=False)


def yaml_value(value: object, indent: int = 0) -> str:
    """Return what follows `key:` in YAML: ` SCALAR` in its line, or the lines of a block.

    Args:
        value: Plain data; keys are sorted.
        indent: Columns before the key, an even number.
    """
    import yaml

    nested, before = {"k": value}, ""
    for level in range(indent // 2):
        nested, before = {"k": nested}, f"{before}{'  ' * level}k:\n"
    text: str = yaml.safe_dump(nested, sort_keys=True, allow_unicode=True, width=1 << 20)
    return text.removeprefix(f"{before}{' ' * indent}k:").removesuffix("\n")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True)
