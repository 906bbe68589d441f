"""What to type next where a variant's outputs failed a gate."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING

from onnxbuild.core.errors import EXIT_GATE

if TYPE_CHECKING:
    from onnxbuild.api import BuildResult

_GATES = ("validate", "evaluate", "choose")
"""Steps that fail a variant for its outputs; on further providers, `validate-cuda` and so on."""


def diagnosis_commands(
    result: BuildResult, settings: Mapping[str, str], store: str | None
) -> tuple[str, ...]:
    """`onnxbuild diagnose RECIPE:VARIANT` for each variant that failed one, in the order it did.

    Args:
        result: Of the build.
        settings: `--set` of the build.
        store: `--store` of the build.
    """
    files = {
        recipe.name: (str(path) if len(recipes) == 1 else recipe.name)
        for path, recipes in result.loaded.by_file.items()
        for recipe in recipes
    }
    options = [f"--set {shlex.quote(f'{key}={value}')}" for key, value in settings.items()]
    options += [] if store is None else [f"--store {shlex.quote(store)}"]
    found = []
    for failure in result.report.failures:
        recipe, _, local = failure.step.partition(":")
        variant, slash, step = local.partition("/")
        if failure.exit_code == EXIT_GATE and slash and step.partition("-")[0] in _GATES:
            name = shlex.quote(f"{files[recipe]}:{variant}")
            found.append(" ".join(["onnxbuild diagnose", name, *options]))
    return tuple(dict.fromkeys(found))
