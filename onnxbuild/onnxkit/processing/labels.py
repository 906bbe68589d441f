"""Labels: a text file, one a line; and the outputs that they name the classes of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.bundles.manifest import Value


@dataclass(frozen=True, slots=True)
class LabelsFile:
    """Names of classes, as a recipe has them.

    Attributes:
        file: Text, one a line.
        output: The output of strings that holds them; empty if the model has none.
    """

    file: Entrypoint
    output: str = ""


def labelled(
    outputs: Sequence[Value], files: Sequence[LabelsFile], context: StepContext
) -> tuple[Value, ...]:
    """Return outputs with the names of their classes.

    A file names the classes of the output of strings that holds them, and of each output of floats that has
    as many places along its last axis as the file has lines; of two files the first counts.

    Args:
        outputs: A model's.
        files: Declared by the step.
        context: The step's.

    Raises:
        StepError: A file is no text in UTF-8, or a line is empty.
    """
    for each in files:
        name, path = context.files(each.file)[0]
        labels = read_labels(name, path, context.where)
        outputs = tuple(
            replace(output, labels=labels)
            if not output.labels and _names_classes_of(output, each.output, len(labels))
            else output
            for output in outputs
        )
    return tuple(outputs)


def _names_classes_of(output: Value, of_strings: str, count: int) -> bool:
    if output.dtype == "string":
        return output.name == of_strings
    is_float = (output.dtype or "").startswith("float")
    return is_float and bool(output.shape) and (output.shape or ())[-1] == count


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
