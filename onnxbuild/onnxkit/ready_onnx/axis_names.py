"""Names of the axes of an ONNX file's inputs, for a recipe."""

from __future__ import annotations

import re
from collections.abc import Sequence

from onnxbuild.core.axis import is_sum
from onnxbuild.onnxkit.data.completed_axes import BATCH
from onnxbuild.onnxkit.ready_onnx.outline import OutlinedValue

_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_GENERATED = re.compile(r"unk__\d+|dim_\d+|d\d+|s\d+|N|None")
"""Names that converters give to axes without one: tf2onnx, torch, Keras."""


class AxisNames:
    """Names of axes, each for one meaning.

    Args:
        inputs: All of the model's.
    """

    def __init__(self, inputs: Sequence[OutlinedValue]) -> None:
        self._named: dict[str, str] = {}
        written = [
            (n, size)
            for value in inputs
            for n, size in enumerate(value.shape or ())
            if isinstance(size, str) and _is_own(size)
        ]
        self._own = {size for _, size in written}
        self._batch_is_first = all(n == 0 for n, size in written if size == BATCH)

    def learn(self, value: OutlinedValue, name: str) -> None:
        """Name the axes of an input that have a name and are no sums."""
        for n, size in enumerate(value.shape or ()):
            if isinstance(size, str) and size and not is_sum(size):
                self._axis(size, name, n)

    def shape(self, value: OutlinedValue, name: str) -> list[int | str]:
        """Return an input's shape as a recipe writes it."""
        return [
            size if isinstance(size, int) else self._axis(size, name, n)
            for n, size in enumerate(value.shape or ())
        ]

    def _axis(self, written: str, name: str, n: int) -> str:
        stem = re.sub(r"[^A-Za-z0-9_]", "_", name)
        given = BATCH if n == 0 and self._batch_is_first else f"{stem}_{n}"
        if not written:
            return given
        if is_sum(written) and (known := self._sum(written)):
            return known
        if written not in self._named:
            self._named[written] = written if _is_own(written) else self._free(given, stem, n)
        return self._named[written]

    def _sum(self, written: str) -> str:
        """A sum of axes that have names, and numbers; empty for any other."""
        parts = [part.strip() for part in written.split("+")]
        is_known = all(part.isdecimal() or part in self._named for part in parts)
        is_fixed = all(part.isdecimal() for part in parts)
        return (
            " + ".join(self._named.get(part, part) for part in parts)
            if is_known and not is_fixed
            else ""
        )

    def _free(self, given: str, stem: str, n: int) -> str:
        """A name for an axis that has a generated one: another axis may be `batch` already."""
        is_free = given not in self._own and given not in self._named.values()
        return given if is_free else f"{stem}_{n}"


def _is_own(written: str) -> bool:
    """Return whether an axis's name is one of the user's."""
    return bool(_SYMBOL.match(written)) and _GENERATED.fullmatch(written) is None
