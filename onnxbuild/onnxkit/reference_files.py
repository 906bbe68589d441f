"""The reference artifact: one .npz a point, and points.json that lists them in order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.feeds import Feeds
from onnxbuild.onnxkit.reports import write_report

if TYPE_CHECKING:
    import numpy as np

POINTS_FILE = "points.json"


@dataclass(frozen=True, slots=True)
class ReferencePoint:
    """Inputs and PyTorch's outputs at one point; mappings in the model's own order."""

    name: str
    sizes: Mapping[str, int]
    feeds: Feeds
    outputs: Mapping[str, np.ndarray]


class ReferenceWriter:
    """Writes points one by one, so that only one is held in memory.

    Args:
        folder: Where to; points.json is written by `finish`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._points: list[dict[str, object]] = []

    def add(self, point: ReferencePoint) -> None:
        """Write NAME.npz: keys `input.NAME` and `output.NAME`; equal arrays give equal bytes."""
        import numpy as np

        file = f"{point.name}.npz"
        arrays = {f"input.{name}": array for name, array in point.feeds.items()}
        arrays |= {f"output.{name}": array for name, array in point.outputs.items()}
        arrays = {key: _without_objects(array) for key, array in arrays.items()}
        np.savez(self._folder / file, **arrays)  # type: ignore[arg-type] # dates are 1980-01-01
        self._points.append({"name": point.name, "sizes": dict(point.sizes), "file": file})

    @property
    def count(self) -> int:
        """How many points were written."""
        return len(self._points)

    def finish(self) -> int:
        """Write points.json; returns how many points there are."""
        write_report(self._folder, self._points, POINTS_FILE)
        return len(self._points)


def _without_objects(array: np.ndarray) -> np.ndarray:
    """Strings as fixed-width Unicode: objects would be pickled, which nobody should have to trust."""
    import numpy as np

    plain: np.ndarray = array.astype(np.str_) if array.dtype.hasobject else array
    return plain


def read_reference(folder: Path) -> Iterator[ReferencePoint]:
    """The points of a reference artifact, in order, one in memory at a time."""
    import numpy as np

    for entry in json.loads((folder / POINTS_FILE).read_text(encoding="utf-8")):
        with np.load(folder / entry["file"], allow_pickle=False) as arrays:
            yield ReferencePoint(
                name=entry["name"],
                sizes=entry["sizes"],
                feeds=_with_prefix(arrays, "input."),
                outputs=_with_prefix(arrays, "output."),
            )


def _with_prefix(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): arrays[name] for name in arrays if name.startswith(prefix)}
