"""Texts of a corpus: a text file, one a line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError

if TYPE_CHECKING:
    import numpy as np


def read_texts(name: str, path: Path, where: str) -> tuple[str, ...]:
    """The lines of a file, without line breaks and empty ones.

    Args:
        name: Path in the recipe's project, for messages.
        path: Path of the file.
        where: `recipe:step`.

    Raises:
        StepError: It is no text in UTF-8, or has none.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise StepError(
            f"{name} is no text in UTF-8: {error}", where=where, fix="save it as UTF-8"
        ) from error
    texts = tuple(each for each in text.replace("\0", "").split("\n") if each.strip())
    if not texts:
        raise StepError(
            f"{name} has no text",
            where=where,
            fix="write some of your own texts there, one a line",
        )
    return texts


def text_array(texts: Sequence[str], count: int, start: int = 0) -> np.ndarray:
    """Return `count` texts as an array, shape (count,): from `start` on, and again from the first after the last."""
    import numpy as np

    made: np.ndarray = np.array([texts[(start + n) % len(texts)] for n in range(count)], object)
    return made
