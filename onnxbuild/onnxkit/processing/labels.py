"""Labels: a text file, one a line."""

from __future__ import annotations

from pathlib import Path

from onnxbuild.core.errors import StepError


def read_labels(name: str, path: Path, where: str) -> tuple[str, ...]:
    """The lines of a file, without the line break that ends the last.

    Args:
        name: As the recipe's project knows it.
        path: Where it is.
        where: `recipe:step`.

    Raises:
        StepError: It is no text in UTF-8, or a line is empty.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise StepError(
            f"{name} is no text in UTF-8: {error}", where=where, fix="save it as UTF-8"
        ) from error
    lines = tuple(text.removesuffix("\n").split("\n")) if text else ()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise StepError(
                f"{name}:{number} is empty; expected a label",
                where=where,
                fix="write a label there, or remove the line",
            )
    return lines
