"""Sections that ask for something to be made of variants."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from onnxbuild.core.params import option

PACKAGES = "packages"
"""The section that asks for other forms of bundles."""


@dataclass(frozen=True)
class AskedOfVariants:
    """What is to be made of variants; the catalog adds a key for each format.

    Attributes:
        added: These keys.
    """

    variants: tuple[str, ...] = option((), help="variants that it is done for; none named: all")

    added: ClassVar[tuple[str, ...]] = ()

    @property
    def asked(self) -> tuple[str, ...]:
        """What is to be made, by its key."""
        return tuple(key for key in self.added if getattr(self, key) is not None)

    def includes(self, variant: str) -> bool:
        """Return whether it is to be made of that variant."""
        return not self.variants or variant in self.variants

    def folders(self, variants: Iterable[str]) -> tuple[str, ...]:
        """The folders of what is made, besides those of the variants themselves."""
        chosen = [name for name in variants if self.includes(name)]
        return tuple(f"{name}-{key}" for name in chosen for key in self.asked)


@dataclass(frozen=True)
class AheadOfTimeOptions(AskedOfVariants):
    """Ahead-of-time models to make, each kept apart from the portable model."""

    load_times: bool = option(
        True, help="measure how long each of them takes to load, compared with the portable model"
    )


@dataclass(frozen=True)
class PackagesOptions(AskedOfVariants):
    """Other forms of the checked bundles, each in a folder of its own."""

    of: Literal["model", "pipeline", "both"] = option(
        "model",
        help="what is packaged: the variant's model; or its pipeline, with pre- and postprocessing, that "
        "`processing` makes; or both",
    )

    def bundles(self, variants: Iterable[str]) -> tuple[str, ...]:
        """The bundles that packages are made of, by the names of their folders."""
        ends = {"model": ("",), "pipeline": ("-pipeline",), "both": ("", "-pipeline")}[self.of]
        return tuple(f"{name}{end}" for name in variants if self.includes(name) for end in ends)

    def folders(self, variants: Iterable[str]) -> tuple[str, ...]:
        """The folders of the packages."""
        return tuple(f"{name}-{key}" for name in self.bundles(variants) for key in self.asked)
