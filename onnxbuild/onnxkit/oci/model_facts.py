"""Fill in ModelPack's config of a model: format, precision, size."""

from __future__ import annotations

import re

from onnxbuild.onnxkit.bundles.manifest import Manifest

_PRECISION = re.compile(r"(fp|bf|int|uint)([0-9]+)")
_NUMBERS = {"fp": "float", "bf": "bfloat", "int": "int", "uint": "uint"}
"""Ours -> ModelPack's, which goes on with the bits."""
_PREFIXES = ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "K"))


def technical_facts(manifest: Manifest) -> dict[str, str]:
    """Return the config's technical part, as far as the bundle says.

    Args:
        manifest: The bundle's.
    """
    found = _PRECISION.fullmatch(manifest.precision)
    known = {
        "format": manifest.kind,
        "precision": f"{_NUMBERS[found[1]]}{found[2]}" if found else "",
        "paramSize": _param_size(manifest),
    }
    return {key: value for key, value in known.items() if value}


def described(recipe: str, title: str) -> dict[str, str]:
    """Return the config's `descriptor` of a bundle.

    Args:
        recipe: Its recipe's name.
        title: What a person calls it: `digits:int8`.
    """
    return {"name": recipe, "title": title}


def _param_size(manifest: Manifest) -> str:
    """`22.7M`; empty below a thousand, for which ModelPack has no form."""
    for size, prefix in _PREFIXES:
        if (manifest.parameters or 0) >= size:
            return f"{(manifest.parameters or 0) / size:.1f}{prefix}"
    return ""
