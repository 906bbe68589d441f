"""Reports as files: JSON that people can read and diff, the same bytes for equal values."""

import json
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.core.step import REPORT_FILE


def write_report(folder: Path, value: object, name: str = REPORT_FILE) -> None:
    """Write sorted, indented JSON.

    Raises:
        ValueError: `value` holds NaN or an infinity.
    """
    text = json.dumps(value, sort_keys=True, indent=2, allow_nan=False, ensure_ascii=False)
    (folder / name).write_text(text + "\n", encoding="utf-8", newline="\n")


def described_file(folder: Path, name: str, module: str) -> Path:
    """Return the description in an artifact's folder.

    Args:
        name: The description's file name.
        module: The module whose `write_description` writes it.

    Raises:
        StepError: It is missing: the step of a plug-in's format did not write it.
    """
    file = folder / name
    if not file.is_file():
        raise StepError(
            f"the step of the format wrote no {name}, which says how its model is opened",
            fix=f"in the plug-in's run(), call `write_description` of {module}",
        )
    return file
