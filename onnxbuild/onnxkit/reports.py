"""Reports as files: JSON that people can read and diff, the same bytes for equal values."""

from __future__ import annotations

import json
from pathlib import Path

from onnxbuild.core.step import REPORT_FILE


def write_report(folder: Path, value: object, name: str = REPORT_FILE) -> None:
    """Write sorted, indented JSON.

    Raises:
        ValueError: `value` holds NaN or an infinity.
    """
    text = json.dumps(value, sort_keys=True, indent=2, allow_nan=False, ensure_ascii=False)
    (folder / name).write_text(text + "\n", encoding="utf-8", newline="\n")
