"""Where the logs of steps are: one file for each step of a run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

_NAME_MAX = 150  # with a digest and `.log` below the 255 bytes that filesystems allow


def log_name(step: str) -> str:
    """Return the file name of a step's log, `bert+int8+quantize.log`; no two steps share one.

    Names in recipes hold no `+`; a long one is cut, and its digest makes the difference.
    """
    recipe, _, local = step.partition(":")
    parts = (recipe, *local.split("/"))
    plain = "+".join(quote(part, safe="@=,", errors="surrogateescape") for part in parts)
    plain = plain.replace("~", "%7E")
    if len(plain) > _NAME_MAX:
        plain = f"{plain[:_NAME_MAX]}~{hashlib.sha256(os.fsencode(step)).hexdigest()}"
    return f"{plain}.log"


def last_log(root: Path, steps: Sequence[str]) -> Path | None:
    """Return the log of a step's last run, failed or not; None if it never ran here.

    Args:
        root: The store's folder.
        steps: Its name, and those of equal steps, which it may have been built as.
    """
    names = [log_name(step) for step in steps]
    for folder in sorted((root / "runs").glob("*/logs"), reverse=True):
        for name in names:
            if (folder / name).is_file():
                return folder / name
    return None
