"""Outline of a model in a file or folder, as each source fills it: inputs, outputs, axes, files, facts for its steps."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

UNKNOWN = ("", "?", "None")
"""Names that converters write for an axis without one, several times in one shape."""

OPSET = "opset"
"""Fact of a model that is ONNX already: its opset."""

FORM = "form"
"""Fact of a model that PyTorch runs: which form its file has."""


@dataclass(frozen=True, slots=True)
class SourceValue:
    """An input or output of a model.

    Attributes:
        name: Its name; for sources whose names can be none in a recipe, the recipe's.
        dtype: As recipes spell it; for what is no tensor `sequence`, `map` or `optional`; else `type N`.
        shape: An int, or the text that names a dynamic axis, empty where it has none; None for a
            tensor of unknown rank.
        table: Of integers that index a table of weights, its rows; 0 for none.
        values: Other keys of a dummy input that say its values: `fill`, `mask`.
    """

    name: str
    dtype: str = "unknown"
    shape: tuple[int | str, ...] | None = None
    table: int = 0
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SizeRange:
    """Sizes that a model takes along an axis.

    Attributes:
        min: Least size.
        max: Greatest; None for any.
        step: Every size is a multiple of it.
    """

    min: int
    max: int | None = None
    step: int = 1

    @property
    def rule(self) -> str:
        """The sizes in words."""
        upper = "or more" if self.max is None else f"to {self.max}"
        return f"{self.min} {upper}" + (f", multiples of {self.step}" if self.step > 1 else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOutline:
    """Facts of a model that are known before its framework is imported.

    Attributes:
        inputs: In order; none where the source does not say them.
        outputs: In order; none where the source does not name them.
        takes_more: The recipe may declare inputs besides these.
        gives_way: Inputs that the recipe declares stand in place of these, all of them.
        axes: Name of an axis -> `min`, `max`, `example` and `multiple_of` where the recipe does not say them.
        ranges: Text of an axis in a shape -> the sizes that the model takes; the recipe is held to them.
        is_strict: Shapes of the recipe have the model's rank and its fixed sizes.
        opset: Of ONNX's own domain; 0 for what is no ONNX.
        files: All files of the model, absolute, in one folder; empty for the one that the recipe names.
        read: Files whose content is said here, absolute; empty for the first of them.
        state: A recipe's `state`, as JSON values: what goes out of one call and into the next.
        recipe: Further keys of a recipe, as JSON values.
        facts: JSON values that the source's steps take.
        notes: Dotted key of a recipe -> what `init` writes next to it.
        again: What to do where the model takes other sizes than are wanted, after `or`.
    """

    inputs: tuple[SourceValue, ...] = ()
    outputs: tuple[SourceValue, ...] = ()
    takes_more: bool = False
    gives_way: bool = False
    axes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    ranges: Mapping[str, SizeRange] = field(default_factory=dict)
    is_strict: bool = False
    opset: int = 0
    files: tuple[Path, ...] = ()
    read: tuple[Path, ...] = ()
    state: Mapping[str, Any] = field(default_factory=dict)
    recipe: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    again: str = ""
