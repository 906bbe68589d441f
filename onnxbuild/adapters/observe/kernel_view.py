"""Merge what Python's import system recorded of a step with what the kernel reported of all its processes."""

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from onnxbuild.adapters.disk.statcache import ABSENT, FOLDER
from onnxbuild.adapters.toolchain.fingerprints import SITE_FOLDERS
from onnxbuild.adapters.toolchain.path_names import PathNames
from onnxbuild.core.step import DEVICES


@dataclass(frozen=True, slots=True)
class View:
    """Conversion of absolute paths to records.

    Attributes:
        names: Gives the recorded form of a path.
        owners_of: Gives the distributions that an installed file is of.
        declared: Files whose content is in the key, as recorded.
    """

    names: PathNames
    owners_of: Callable[[str], Collection[str]]
    declared: Collection[str]


def merged(python: Mapping[str, Any], kernel: Mapping[str, Any], view: View) -> dict[str, Any]:
    """Return what a step used: the form of `Observer.report`, with what the kernel reported.

    Args:
        python: From `Observer.report`.
        kernel: From `AccessLog.to_json`.
        view: How paths are recorded.
    """
    shown = view.names.shown
    data = {shown(path): found for path, found in kernel["read"].items()}
    data |= {f"{shown(path)}/": found for path, found in kernel["listed"].items()}
    if kernel["sites_listed"]:
        data[f"{SITE_FOLDERS}/"] = ""
    distributions = set(python["distributions"])
    for path in kernel["installed"]:
        owners = view.owners_of(path)
        distributions.update(owners)
        if not owners:
            data[shown(path)] = ""
    if kernel["devices"]:
        distributions.add(DEVICES)
    known = {*python["sources"], *python["data"], *data, *view.declared}
    return {
        **python,
        "data": {**data, **python["data"]},
        "distributions": sorted(distributions),
        "links": {
            shown(link): _shown_target(to, view)
            for link, to in kernel["links"].items()
            if link not in view.names.projects  # where the project is does not count
        },
        "existence": _telling({shown(p): kind for p, kind in kernel["looked"].items()}, known),
    }


def _shown_target(target: str, view: View) -> str:
    return view.names.shown(target) if os.path.isabs(target) else target


def _telling(looked: Mapping[str, str], known: Collection[str]) -> dict[str, str]:
    """Return those that say more than that what was used is there."""
    used = {path.rstrip("/") for path in known}
    there = (*used, *(path for path, kind in looked.items() if kind != ABSENT))
    above = {str(parent) for path in there for parent in PurePath(path).parents}
    return {
        path: kind
        for path, kind in looked.items()
        if path not in used and not (kind == FOLDER and path in above)
    }
