"""Labels: a text file, one a line; and the outputs that they name the classes of."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.bundles.manifest import Value
from onnxbuild.onnxkit.data.calibration_data import read_text


@dataclass(frozen=True, slots=True)
class LabelsFile:
    """Names of classes, as a recipe has them.

    Attributes:
        file: Text, one a line.
        output: The output of strings that holds them; empty if the model has none.
        scores: Outputs of floats with a place for each of these classes, in their order.
        others: Outputs whose places are others, or in another order.
        names_verdicts: Whether they are names of what a threshold gives, not of places.
    """

    file: Entrypoint
    output: str = ""
    scores: tuple[str, ...] = field(default=(), metadata={"sparse": True})
    others: tuple[str, ...] = field(default=(), metadata={"sparse": True})
    names_verdicts: bool = field(default=False, metadata={"sparse": True})


def labelled(
    outputs: Sequence[Value], files: Sequence[LabelsFile], context: StepContext
) -> tuple[Value, ...]:
    """Return outputs with the names of their classes.

    A file names the classes of the output of strings that holds them, of its scores, and of each other output of
    floats that has as many places along its last axis as the file has lines; of two files the first counts.

    Args:
        files: Declared by the step.

    Raises:
        StepError: A file is no text in UTF-8, or a line is empty.
    """
    read = [(each, read_labels(*context.files(each.file)[0], context.where)) for each in files]
    return tuple(replace(each, labels=_labels_of(each, read)) for each in outputs)


def _labels_of(
    output: Value, read: Sequence[tuple[LabelsFile, tuple[str, ...]]]
) -> tuple[str, ...]:
    if output.dtype == "string":
        return next((labels for each, labels in read if each.output == output.name), output.labels)
    is_float = (output.dtype or "").startswith("float")
    size = output.shape[-1] if is_float and output.shape else None
    fitting = [
        (each, labels)
        for each, labels in read
        if len(labels) == size and output.name not in each.others and not each.names_verdicts
    ]
    fitting.sort(key=lambda pair: output.name not in pair[0].scores)
    return fitting[0][1] if fitting else output.labels


def read_labels(name: str, path: Path, where: str) -> tuple[str, ...]:
    """The lines of a file, without the line break that ends the last.

    Args:
        name: As the recipe's project knows it.
        where: `recipe:step`.

    Raises:
        StepError: It is no text in UTF-8, or a line is empty.
    """
    text = read_text(name, path, where)
    lines = tuple(text.removesuffix("\n").split("\n")) if text else ()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise StepError(
                f"{name}:{number} is empty; expected a label",
                where=where,
                fix="write a label there, or remove the line",
            )
    return lines
