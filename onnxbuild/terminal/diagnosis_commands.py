"""Print the command to type next after a variant's outputs failed a gate."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING

from onnxbuild.core.errors import EXIT_GATE

if TYPE_CHECKING:
    from onnxbuild.api import BuildResult


def diagnosis_commands(
    result: BuildResult, settings: Mapping[str, str], store: str | None
) -> tuple[str, ...]:
    """`onnxbuild diagnose RECIPE:VARIANT` for each variant that failed one, in the order it did.

    Args:
        result: Of the build.
        settings: `--set` of the build.
        store: `--store` of the build.
    """
    if not result.report.failures:
        return ()
    from onnxbuild.diagnosis.chain import judging_kinds

    files = {
        recipe.name: (str(path) if len(recipes) == 1 else recipe.name)
        for path, recipes in result.loaded.by_file.items()
        for recipe in recipes
    }
    variants = {(each.name, v.name) for each in result.loaded.recipes for v in each.variants}
    options = [f"--set {shlex.quote(f'{key}={value}')}" for key, value in settings.items()]
    options += [] if store is None else [f"--store {shlex.quote(store)}"]
    found, judging = [], judging_kinds()
    for failure in result.report.failures:
        at = result.graph.addresses[failure.step]
        kind = result.graph.steps[failure.step].kind
        can_be_looked_into = (at.recipe, at.bundle) in variants and kind in judging
        if failure.exit_code == EXIT_GATE and can_be_looked_into:
            name = shlex.quote(f"{files[at.recipe]}:{at.variant}")
            found.append(" ".join(["onnxbuild diagnose", name, *options]))
    return tuple(dict.fromkeys(found))
