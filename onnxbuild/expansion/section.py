"""Sections of recipes that a feature declares: the key, the options below it, and where else it may be written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Below = Mapping[str, Literal["callable", "file", "files"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A key of a recipe.

    Attributes:
        name: The key.
        options: Frozen dataclass of what may stand below it, each field with its help.
        callables: Keys below it that take a callable of the user's -> (name in
            Recipe.entrypoints, help).
        short: The option that a plain word stands for: `optimize: none`.
        by_variant: A variant may write its own over the recipe's.
        holds_tolerances: Below it are tolerances by precision; a variant or a format may write its own
            tolerances under the same key.
        has_points: Its option `points` lists sizes of axes.
        files: Those of `callables` that also take `dummy`, or the paths of .npy and .npz files.
        below: Keys at any depth below it, in lists, too, that name a callable (`callable`), one data file
            (`file`) or a list of them (`files`); their name in Recipe.entrypoints is their path.
        needs_onnx: Why it says nothing where no ONNX model is made; empty where it does.
        takes_names: A list of names does, `packages: [triton, web]`: what stands below each may be left out.
        words: Names that other tools have for the key, separated by blanks.
    """

    name: str
    options: type
    callables: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    short: str = ""
    by_variant: bool = False
    holds_tolerances: bool = False
    has_points: bool = False
    files: tuple[str, ...] = ()
    below: Below = field(default_factory=dict)
    needs_onnx: str = ""
    takes_names: bool = False
    words: str = ""
