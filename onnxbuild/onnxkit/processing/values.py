"""Types of values before anything runs, and the error of an operation in a wrong place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Layout = Literal["", "NHWC", "NCHW"]
PREPROCESS, POSTPROCESS = "preprocess", "postprocess"


class ProcessingError(ValueError):
    """An operation that can't be where it is.

    Attributes:
        what: One sentence.
        fix: Something to type.
        section: PREPROCESS or POSTPROCESS.
        position: Of the operation in its list; None for the list itself.
    """

    def __init__(
        self, what: str, fix: str = "", section: str = "", position: int | None = None
    ) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix
        self.section = section
        self.position = position


@dataclass(frozen=True, slots=True)
class ValueType:
    """A value.

    Attributes:
        dtype: As numpy spells it; empty where it is not known.
        shape: Sizes, symbols, or None for a size that is not known; None where the rank is not known.
        layout: Of images; empty for what is none.
        classes: How many classes its integers count; None where that is not known, or they count none.
        least: Least height and width of images, where one is known.
    """

    dtype: str = ""
    shape: tuple[int | str | None, ...] | None = None
    layout: Layout = ""
    classes: int | None = None
    least: int = 1

    @property
    def is_float(self) -> bool:
        """Whether it holds floats, as far as is known."""
        return not self.dtype or "float" in self.dtype

    def __str__(self) -> str:
        layout = f" {self.layout}" if self.layout else ""
        sizes = "" if self.shape is None else f" {_sizes(self.shape)}"
        return f"{self.dtype or 'of unknown dtype'}{layout}{sizes}"


def _sizes(shape: tuple[int | str | None, ...]) -> str:
    return f"[{', '.join('?' if each is None else str(each) for each in shape)}]"
