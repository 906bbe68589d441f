"""Markup of drawings: pieces of SVG, and pages that are one self-contained HTML file each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


_NO_TEXT = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]"
)
"""Characters that XML has no place for, and those that turn the direction of what follows."""


def escape(text: str) -> str:
    """Return text for an element or an attribute in double quotes; what no document may hold as a box."""
    safe = _NO_TEXT.sub("\ufffd", text)
    safe = safe.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return safe.replace('"', "&quot;").replace("'", "&#39;")


def rect(place: tuple[float, float, float, float], radius: float, name: str) -> str:
    """Return a rectangle with a class.

    Args:
        place: x, y, width, height.
    """
    x, y, width, height = place
    return (
        f'<rect class="{name}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'rx="{radius:.1f}"/>'
    )


PAGE_MAX_BYTES = 300_000
"""Limit for the size of a page without embedded models."""

_SHELL = "onnxbuild.onnxkit.drawing"


def render(package: str, template: str, values: Mapping[str, Any]) -> str:
    """Return a page: a template that extends `page.html.j2`, with values escaped.

    Args:
        package: The package with the folder templates/ that it is in; others there can be included.
        values: What it shows. Text is escaped; what is markup already is `markupsafe.Markup`.
    """
    return _environment(package).get_template(template).render(values)


@cache
def _environment(package: str) -> Environment:
    from jinja2 import ChoiceLoader, Environment, FunctionLoader, StrictUndefined

    sources = [FunctionLoader(partial(_read, each)) for each in (package, _SHELL)]
    return Environment(
        loader=ChoiceLoader(sources),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _read(package: str, name: str) -> str | None:
    file = resources.files(package).joinpath("templates", name)
    return file.read_text(encoding="utf-8") if file.is_file() else None
