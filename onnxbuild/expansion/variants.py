"""Make a variant of its mode and what a recipe, or a search, says of it; write it as a recipe has it."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from onnxbuild.core.params import to_json
from onnxbuild.core.recipe import Location, Recipe, Variant
from onnxbuild.expansion.feature import Mode


def variant_of(
    name: str,
    mode: Mode,
    options: object,
    *,
    sections: Mapping[str, object],
    location: Location,
    search: str = "",
    trial: str = "",
) -> Variant:
    """A variant, with what its mode says of it.

    Args:
        sections: Its own, over the recipe's.
        location: Where the recipe declares it.
        search: Of a trial, the variant that is searched for.
        trial: Of a trial, its name.
    """
    precision = mode.precision_of(options) if mode.precision_of else mode.precision
    return Variant(
        name=name,
        mode=mode.name,
        options=options,
        sections=sections,
        location=location,
        precision=precision,
        tolerances=mode.tolerances[precision],
        searches=mode.trials is not None,
        search=search,
        trial=trial,
    )


Written = dict[str, Any]
"""Key -> plain JSON value, in the order to write them."""


def written_variant(recipe: Recipe, variant: Variant) -> Written:
    """Return what stands below `quantization: {NAME: ...}`, the variant's own sections included.

    Args:
        recipe: The variant's: a section of it is below the variant's own of the same type.
        variant: One of its, or a trial of one.
    """
    found: Written = {"mode": variant.mode}
    if variant.options is not None:
        found |= written_options(variant.options)
    for name, section in variant.sections.items():
        found[name] = (
            written_options(section, recipe.sections[name])
            if type(section) is type(recipe.sections[name])
            else _filled(to_json(section))
        )
    return {key: value for key, value in found.items() if value != {}}


def written_options(options: Any, below: Any = None) -> Written:
    """The fields that are not the default, or not what is below.

    Args:
        options: A dataclass whose every field has a default.
        below: One of the same type that is in force where a field is left out; None if none is.
    """
    default, found = type(options)(), to_json(options)
    under = default if below is None else below
    return {
        field.name: found[field.name]
        for field in dataclasses.fields(options)
        if getattr(options, field.name) != getattr(default, field.name)
        or getattr(options, field.name) != getattr(under, field.name)
    }


def yaml_lines(value: Mapping[str, Any], indent: int = 0) -> tuple[str, ...]:
    """A mapping as YAML: an item of a list a line, mappings below the first in one line.

    Args:
        value: Of `written_variant` or `written_options`.
        indent: Spaces before each line.
    """
    lines: list[str] = []
    space = " " * indent
    for key, each in value.items():
        if isinstance(each, list) and each:
            lines.append(f"{space}{key}:")
            lines += [f"{space}  - {json.dumps(item)}" for item in each]
        else:
            lines.append(f"{space}{key}: {flow(each)}")
    return tuple(lines)


def flow(value: Any) -> str:
    """A value in one line, plain words without quotes."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {flow(each)}' for key, each in value.items())}}}"
    if isinstance(value, str) and value.isidentifier():
        return value
    return json.dumps(value)


def _filled(value: Mapping[str, Any]) -> Written:
    """Without what is not set, at any depth."""
    found = {
        key: _filled(each) if isinstance(each, Mapping) else each
        for key, each in value.items()
        if each is not None
    }
    return {key: each for key, each in found.items() if each != {}}
