"""One self-contained HTML file: the style and the script are in it, nothing is asked of any server."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


PAGE_MAX_BYTES = 300_000
"""Limit for the size of a page without embedded models."""

_SHELL = "onnxbuild.onnxkit.drawing"


def render(package: str, template: str, values: Mapping[str, Any]) -> str:
    """Return a page: a template that extends `page.html.j2`, with values escaped.

    Args:
        package: The package with the folder templates/ that it is in; others there can be included.
        template: Its file name.
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
