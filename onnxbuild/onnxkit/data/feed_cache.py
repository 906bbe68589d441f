"""Feeds kept on disk, so that data that comes once can be gone through again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from onnxbuild.onnxkit.data.feeds import Feeds


class FeedCache:
    """Feeds written one after the other; memory holds one at a time.

    Args:
        path: The file, in a scratch folder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._names: list[tuple[str, ...]] = []

    def keep(self, feeds: Iterable[Feeds]) -> Iterator[Feeds]:
        """Pass feeds on, each written first."""
        import numpy as np

        with self._path.open("wb") as file:
            for sample in feeds:
                self._names.append(tuple(sample))
                for array in sample.values():
                    np.save(file, array, allow_pickle=False)
                yield sample

    def __iter__(self) -> Iterator[Feeds]:
        """The feeds that were kept, in their order."""
        import numpy as np

        with self._path.open("rb") as file:
            for names in self._names:
                yield {name: np.load(file, allow_pickle=False) for name in names}
