"""Paths of the logs of steps: one file for each step of a run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from onnxbuild.adapters.store.housekeeping import GONE, OWN, home_of, whose_run

_NAME_MAX = 150  # with a digest and `.log` below the 255 bytes that filesystems allow


def log_name(recipe: str, step: str) -> str:
    """Return the file name of a step's log, `bert+int8+quantize.log`; no two steps share one.

    A `+` in a name is written `%2B`; a long name is cut, and its digest makes the difference.

    Args:
        recipe: The recipe's name.
        step: The step's name in the recipe, `int8/quantize`.
    """
    above = quote(recipe, safe="@=,", errors="surrogateescape")
    local = quote(step, safe="@=,/", errors="surrogateescape").replace("/", "+")
    plain = f"{above}+{local}".replace("~", "%7E")
    if len(plain) > _NAME_MAX:
        whole = os.fsencode(f"{recipe}:{step}")
        plain = f"{plain[:_NAME_MAX]}~{hashlib.sha256(whole).hexdigest()}"
    return f"{plain}.log"


def last_log(root: Path, project: Path, steps: Iterable[tuple[str, str]]) -> Path | None:
    """Return the log of a step's last run, failed or not; None if it never ran here.

    Args:
        root: The store's folder.
        project: The project whose runs count; others may share the store.
        steps: (recipe, name in it) of the step, and of equal steps, which it may have been built as.
    """
    names = [log_name(recipe, step) for recipe, step in steps]
    home = home_of(root, project)
    of_gone: Path | None = None
    for folder in sorted((root / "runs").glob("*/logs"), reverse=True):
        found = next((folder / name for name in names if (folder / name).is_file()), None)
        if found is None:
            continue
        whose = whose_run(root, folder.parent.name, home)
        if whose == OWN:
            return found
        if whose == GONE:
            of_gone = of_gone or found
    return of_gone
