"""A release.json that somebody else wrote: whether every value is one that a release has there."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from onnxbuild.core.errors import UsageError
from onnxbuild.release_format.about import EPOCH_MAX_S, check_version
from onnxbuild.release_format.bundles import SECTIONS, section_bundles
from onnxbuild.release_format.layout import (
    GOLDEN_FOLDER,
    MANIFEST,
    RECIPE_FOLDER,
    REPORTS_FOLDER,
)

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")

Check = Callable[[Any], str]
"""What is wrong with a value, after `PATH `; empty if nothing is."""


def about_fault(about: object, files: Collection[str]) -> str:
    """What is wrong with a release.json first; empty if nothing is.

    Args:
        about: Its value.
        files: The release's files: every path that it names must be one of them.
    """
    folders = {name[:end] for name in files for end in _slashes(name)}
    bundles = {
        name.removesuffix(f"/{MANIFEST}") for name in files if name.endswith(f"/{MANIFEST}")
    }
    file = _one_of(files, "file")
    folder = _one_of(folders, "folder")
    bundle = _one_of(bundles, f"folder with a {MANIFEST}")
    record = _record(
        recipe=_text,
        variant=_text,
        bundle=bundle,
        step=_text,
        golden=folder,
        reference=_text,
        benchmarks=_map(_text),
    )
    sections = {section.key: _map(record) for section in SECTIONS}
    fault = _record(
        format=_whole,
        name=_name,
        version=_version,
        onnxbuild=_text,
        source=_record(
            commit=_commit, dirty=_yes_or_no, changed=_list(_text), outside=_list(_text)
        ),
        epoch_s=_whole,
        recipe=file,
        lock=file,
        bases=_list(file),
        **sections,
        reports=_map(_text, key=file),
    )(about).strip()
    return fault or _names_fault(about) or _place_fault(about)


def _names_fault(about: Any) -> str:
    """Whether bundles have names and places of their own, and there are any."""
    names: list[str] = []
    places: list[str] = []
    for section, name, entry in section_bundles(about):
        where = f".{section.key}.{name}"
        if name in names:
            return f"{where} has the name of another bundle"
        if any(f"{entry['bundle']}/".startswith(f"{each}/") for each in places):
            return f"{where}.bundle lies in another bundle"
        names.append(name)
        places.append(entry["bundle"])
    return "" if names else f".{SECTIONS[0].key} is empty, and so is all else"


def _place_fault(about: Any) -> str:
    """Whether each thing is where releases have it, so that nothing passes for something else."""
    for section, name, entry in section_bundles(about):
        where = f".{section.key}.{name}"
        if entry["bundle"] != f"{section.folder}/{name}":
            return f"{where}.bundle is not {section.folder}/{name}"
        if entry["golden"].partition("/")[0].partition("-")[0] != GOLDEN_FOLDER:
            return f"{where}.golden is not below {GOLDEN_FOLDER}/"
    for key, names in (
        ("recipe", [about["recipe"]]),
        ("lock", [about["lock"]]),
        ("bases", about["bases"]),
    ):
        if any(not name.startswith(f"{RECIPE_FOLDER}/") for name in names):
            return f".{key} is not below {RECIPE_FOLDER}/"
    if any(not name.startswith(f"{REPORTS_FOLDER}/") for name in about["reports"]):
        return f".reports names a file that is not below {REPORTS_FOLDER}/"
    return ""


def _slashes(name: str) -> list[int]:
    return [place for place, letter in enumerate(name) if letter == "/"]


def _record(**checks: Check) -> Check:
    """A mapping with exactly these keys."""

    def check(value: Any) -> str:
        if not isinstance(value, Mapping):
            return " is no mapping"
        for key in checks:
            if key not in value:
                return f" has no '{key}'"
        for key in value:
            if key not in checks:
                return f" has '{key}', which no release has"
        return next((f".{k}{found}" for k, c in checks.items() if (found := c(value[k]))), "")

    return check


def _map(check_value: Check, *, key: Check | None = None) -> Check:
    """A mapping from texts."""

    def check(value: Any) -> str:
        if not isinstance(value, Mapping):
            return " is no mapping"
        for name, each in value.items():
            found = (key or _text)(name) or check_value(each)
            if found:
                return f".{name}{found}"
        return ""

    return check


def _list(check_each: Check) -> Check:
    def check(value: Any) -> str:
        if not isinstance(value, list):
            return " is no list"
        return next((f"[{n}]{found}" for n, v in enumerate(value) if (found := check_each(v))), "")

    return check


def _one_of(known: Collection[str], what: str) -> Check:
    return lambda value: (
        "" if isinstance(value, str) and value in known else f" names no {what} of the release"
    )


def _text(value: Any) -> str:
    return "" if isinstance(value, str) else " is no text"


def _name(value: Any) -> str:
    good = isinstance(value, str) and value and value.isprintable() and "/" not in value
    return "" if good else " is no name"


def _version(value: Any) -> str:
    try:
        check_version(value if isinstance(value, str) else "")
    except UsageError:
        return " is no version"
    return ""


def _commit(value: Any) -> str:
    good = value is None or (isinstance(value, str) and _COMMIT.fullmatch(value))
    return "" if good else " is no commit"


def _yes_or_no(value: Any) -> str:
    return "" if isinstance(value, bool) else " is neither true nor false"


def _whole(value: Any) -> str:
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= EPOCH_MAX_S
    return "" if good else " is no number that a release has"
