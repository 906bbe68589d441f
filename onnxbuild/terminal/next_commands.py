"""The commands to type next after a variant's outputs failed a gate."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING

from onnxbuild.core.errors import EXIT_GATE

if TYPE_CHECKING:
    from onnxbuild.building.api import BuildResult


def next_commands(
    result: BuildResult, settings: Mapping[str, str], store: str | None
) -> tuple[tuple[str, str], ...]:
    """Return (purpose, command): `onnxbuild diagnose` of each variant that failed, then one `onnxbuild report`.

    Args:
        settings: `--set` of the build.
        store: `--store` of the build.
    """
    from onnxbuild.building.type_again import options_again

    failed = _failed(result) if result.report.failures else []
    options = options_again(settings, store)
    files = {
        recipe.name: (str(path), len(recipes))
        for path, recipes in result.loaded.by_file.items()
        for recipe in recipes
    }
    found = []
    for number, (recipe, variant) in enumerate(failed):
        file, recipes = files[recipe]
        name = shlex.quote(f"{file if recipes == 1 else recipe}:{variant}")
        what = "likewise" if number else "to see where it goes wrong"
        found.append((what, " ".join(["onnxbuild diagnose", name, *options])))
    if failed:
        names = dict.fromkeys(shlex.quote(files[recipe][0]) for recipe, _ in failed)
        found.append(("all verdicts as a page", " ".join(["onnxbuild report", *names, *options])))
    return tuple(found)


def _failed(result: BuildResult) -> list[tuple[str, str]]:
    """(recipe, variant), in the order in which they failed a gate."""
    from onnxbuild.diagnosis.chain import judging_kinds

    variants = {(each.name, v.name) for each in result.loaded.recipes for v in each.variants}
    found, judging = [], judging_kinds()
    for failure in result.report.failures:
        at = result.graph.addresses[failure.step]
        kind = result.graph.steps[failure.step].kind
        can_be_looked_into = (at.recipe, at.bundle) in variants and kind in judging
        if failure.exit_code == EXIT_GATE and can_be_looked_into:
            found.append((at.recipe, at.variant))
    return list(dict.fromkeys(found))
