"""The reports that each run left in the store, by name: what later runs are compared with."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from onnxbuild.adapters.disk.atomic_files import write_atomically
from onnxbuild.adapters.disk.plain_files import parse_json
from onnxbuild.adapters.store.housekeeping import OTHER, home_of, whose_run
from onnxbuild.core.digest import Digest
from onnxbuild.regular_files import read_regular

REPORTS_FILE = "reports.json"
"""File in a run's folder, next to its logs; removed with them."""

Reports = Mapping[str, Sequence[Mapping[str, Any]]]
"""Recipe -> its reports: `form`, `bundle`, `step`, `target`, `gate`, `passed`, and `files`, name -> sha256."""


def write_reports(root: Path, run: str, reports: Reports) -> None:
    """Note which reports a run made or found.

    Args:
        root: The store's folder.
        run: The run's id.
        reports: Its reports.
    """
    content = json.dumps(reports, sort_keys=True).encode()
    write_atomically(root / "runs" / run / REPORTS_FILE, content, root / "tmp")


def noted_reports(
    root: Path, project: Path, recipe: str
) -> Iterator[tuple[str, Sequence[Mapping[str, Any]]]]:
    """Yield (run, its reports on a recipe), the oldest run first; what is damaged is left out.

    Args:
        root: The store's folder.
        project: The project whose runs count; others may share the store.
        recipe: A recipe's name.
    """
    home = home_of(root, project)
    try:
        runs = sorted(os.listdir(root / "runs"))  # names begin with the time
    except OSError:
        return
    for run in runs:
        try:
            found = parse_json(read_regular(root / "runs" / run / REPORTS_FILE))[recipe]
            rows = [_sound(each) for each in found]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        if whose_run(root, run, home) != OTHER:
            yield run, rows


def _sound(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row whose digests are digests: a name in the store is untrusted input."""
    for sha256 in row["files"].values():
        Digest(sha256, 0)
    return row
