"""The bundles of a release: ONNX variants, PyTorch programs and ahead-of-time models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from onnxbuild.core.graph import Family


@dataclass(frozen=True, slots=True)
class Section:
    """One kind of bundle.

    Attributes:
        key: Where release.json has its records, by name.
        folder: Where its bundles lie.
        kind: Kind of the step that makes them.
    """

    key: str
    folder: str
    kind: str


VARIANTS = Section("variants", "variants", "package")
FORMATS = Section("formats", "formats", "package-program")
AHEAD_OF_TIME = Section("ahead_of_time", "ahead-of-time", "package-ahead-of-time")
SECTIONS = (VARIANTS, FORMATS, AHEAD_OF_TIME)
SECTION_OF: Mapping[Family, Section] = {
    "variant": VARIANTS,
    "program": FORMATS,
    "artifact": AHEAD_OF_TIME,
}
"""A release holds no packages: each is made of a variant's bundle, which it holds."""


def section_bundles(about: Mapping[str, Any]) -> Iterator[tuple[Section, str, Mapping[str, Any]]]:
    """(section, name, record) of every bundle that a release.json names, by name in each section.

    JSON is written with its keys sorted, so that any other order would be lost on the way.
    """
    for section in SECTIONS:
        for name in sorted(about[section.key]):
            yield section, name, about[section.key][name]


def bundles_of(about: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Name -> record of every bundle; no name is there twice."""
    return {name: entry for _, name, entry in section_bundles(about)}


def model_file(manifest: Mapping[str, Any]) -> str:
    """The file of a bundle that is opened: a manifest of an ONNX variant does not say.

    Raises:
        ValueError: The manifest says a name that is not a file's, directly in the bundle.
    """
    name = manifest.get("file", "model.onnx")
    if not isinstance(name, str) or name in {"", ".", ".."} or set(name) & set("/\\\0"):
        raise ValueError(f"its file is {name!a}, which is no name of a file in its folder")
    return name


def bound_to(manifest: Mapping[str, Any]) -> str:
    """The machine that a bundle's files are made for, for people; empty where any will do."""
    made_for = manifest.get("made_for")
    if not made_for:
        return ""
    has = [flag for flag, there in made_for["flags"].items() if there]
    device = f", {made_for['device']}" if made_for["device"] else ""
    return f"{made_for['machine']}, {made_for['cpu']}{device} ({', '.join(has) or 'no flags'})"
