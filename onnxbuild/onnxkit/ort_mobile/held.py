"""Hold a package for phones against its variant without running its model: inputs, outputs, operators, sizes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from onnxbuild.onnxkit.ahead_of_time.artifact_file import OPERATORS_FILE
from onnxbuild.onnxkit.ahead_of_time.ort_format import required_operators
from onnxbuild.onnxkit.bundles.manifest import Manifest, Value
from onnxbuild.onnxkit.ort_mobile.content import SIZES_FILE


def own_faults(folder: Path, manifest: Manifest, found: Mapping[str, Any]) -> Iterator[str]:
    """Yield what of a package does not fit its model or its variant.

    Args:
        folder: The package; its checksums hold.
        manifest: The variant's.
        found: From `described`, of its model.
    """
    for side, values in (("inputs", manifest.inputs), ("outputs", manifest.outputs)):
        if not _fit(found[side], values):
            yield f"its model has other {side} than the variant"
    config = (folder / OPERATORS_FILE).read_text(encoding="utf-8")
    needed = required_operators(config)
    used = {each["operator"] for each in found["sizes"]["operators"]}
    if lacking := sorted(used - set(needed)):
        yield f"{OPERATORS_FILE} lacks operators of its model: {', '.join(lacking)}"
    sizes = json.loads((folder / SIZES_FILE).read_text(encoding="utf-8"))
    if sizes != {**found["sizes"], "kernels": needed}:
        yield f"{SIZES_FILE} is of another model"


def _fit(found: Sequence[Sequence[Any]], values: Iterable[Value]) -> bool:
    """Return whether names and types are equal, in order, and fixed sizes do not contradict."""
    wanted = [*values]
    if [(name, dtype) for name, dtype, _ in found] != [(e.name, e.dtype) for e in wanted]:
        return False
    return all(
        _same_shape(shape, each.shape) for (_, _, shape), each in zip(found, wanted, strict=True)
    )


def _same_shape(found: Sequence[int] | None, wanted: Sequence[int | str] | None) -> bool:
    if found is None or wanted is None:
        return True
    if len(found) != len(wanted):
        return False
    pairs = zip(found, wanted, strict=True)
    return all(one == other for one, other in pairs if one >= 0 and isinstance(other, int))
