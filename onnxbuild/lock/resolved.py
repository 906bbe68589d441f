"""A recipe with everything filled in, as JSON: what a lock records and a release ships."""

from __future__ import annotations

import hashlib
from typing import Any

from onnxbuild.core.params import to_json
from onnxbuild.core.recipe import FRONTEND, Entrypoint, Recipe


def resolved_recipe(recipe: Recipe) -> dict[str, Any]:
    """Return all that the recipe asks for, without the places in its file.

    The values of environment variables are given by digest: a file that is committed is no place
    for a token.
    """
    formats = {
        each.name: {"options": to_json(each.options), "tolerances": to_json(each.tolerances)}
        for each in recipe.formats
    }
    return {
        "name": recipe.name,
        "model": _entrypoint(recipe.model),
        "inputs": to_json(recipe.inputs),
        "outputs": list(recipe.outputs),
        "axes": to_json(recipe.axes),
        "opset": recipe.opset,
        "variants": {
            variant.name: {
                "mode": variant.mode,
                "options": to_json(variant.options),
                "sections": to_json(variant.sections),
            }
            for variant in recipe.variants
        },
        "targets": to_json(recipe.targets),
        "gates": to_json(recipe.gates),
        "sections": to_json(recipe.sections),
        "entrypoints": {name: _entrypoint(each) for name, each in recipe.entrypoints.items()},
        **({"formats": formats} if formats else {}),
        **({} if recipe.frontend == FRONTEND else {"frontend": recipe.frontend}),
        **({} if recipe.environment is None else {"environment": to_json(recipe.environment)}),
    }


def _entrypoint(entrypoint: Entrypoint) -> dict[str, Any]:
    resolved: dict[str, Any] = to_json(entrypoint)
    resolved["env"] = {
        name: f"sha256 {hashlib.sha256(value.encode('utf-8', 'surrogateescape')).hexdigest()}"
        for name, value in entrypoint.env.items()
    }
    return resolved
