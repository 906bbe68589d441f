"""The user's metric, which scores what a model made of labelled data."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError, nearest
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.data.call_arguments import misfit
from onnxbuild.onnxkit.data.non_finite import odd_values
from onnxbuild.onnxkit.data.user_code import an, call_entrypoint

if TYPE_CHECKING:
    import numpy as np

    Batches = Sequence[Mapping[str, np.ndarray]]


class UserMetric:
    """The user's metric, in the form that it takes.

    It is called with lists, one entry for each batch. If the first call raises, it is called with all batches
    joined, and if that gives a score, so it is from then on.

    Args:
        context: The step's.
        entrypoint: The metric.
    """

    def __init__(self, context: StepContext, entrypoint: Entrypoint) -> None:
        self._where = context.where
        self._entrypoint = entrypoint
        self._metric = context.load(entrypoint)
        self._takes_joined: bool | None = None

    def score(self, outputs: Batches, labels: Sequence[object]) -> float:
        """Score some batches.

        Args:
            outputs: A mapping of output name -> array for each batch.
            labels: One entry for each batch.

        Raises:
            StepError: The metric raises, or gives no finite number.
        """
        if self._takes_joined is None:
            value = self._first(outputs, labels)
        elif self._takes_joined:
            value = self._called(_joined_outputs(outputs), _joined(labels))
        else:
            value = self._called(outputs, labels)
        return _as_score(value, self._entrypoint.target, outputs, self._where)

    def _called(self, outputs: object, labels: object) -> Any:
        return call_entrypoint(
            self._metric,
            self._entrypoint,
            self._where,
            owner="the metric's",
            given={"outputs": outputs, "labels": labels},
        )

    def _first(self, outputs: Batches, labels: Sequence[object]) -> Any:
        try:
            value = self._called(outputs, labels)
        except StepError as error:
            if misfit(self._metric, self._entrypoint.args, (outputs, labels)) is not None:
                raise
            value = self._second(outputs, labels, error)
            self._takes_joined = True
        else:
            self._takes_joined = False
        return value

    def _second(self, outputs: Batches, labels: Sequence[object], error: StepError) -> Any:
        """Call it with all batches joined.

        Raises:
            StepError: It raises, too; the error is that of the form which the metric seems to take.
        """
        try:
            joined = _joined_outputs(outputs), _joined(labels)
        except ValueError:  # batches of several sizes, such as sentences
            raise _explained(error, outputs, labels) from error.__cause__
        try:
            return self._called(*joined)
        except StepError as other:
            if _wants_names(error.__cause__):
                raise _explained(other, *joined) from other.__cause__
            raise _explained(error, outputs, labels) from error.__cause__


def _wants_names(cause: BaseException | None) -> bool:
    """Return whether a metric failed as it took the list of batches for a mapping of names."""
    return isinstance(cause, (TypeError, AttributeError)) and "list" in str(cause)


def _explained(error: StepError, outputs: Any, labels: object) -> StepError:
    fix = (
        "write the metric for lists with an entry for each batch (`outputs[0]['NAME']` belongs to `labels[0]`), "
        "or for all batches joined (`outputs['NAME']` belongs to `labels`)"
    )
    names = list(outputs if isinstance(outputs, Mapping) else outputs[0])
    asked = error.__cause__.args[0] if isinstance(error.__cause__, KeyError) else None
    if isinstance(asked, str) and asked not in names:
        fix = f"write `{nearest(asked, names, 1)[0]}` in place of `{asked}`; `outputs` of the recipe names the outputs"
    return StepError(
        f"{error.what}; its outputs were {_shown(outputs)}, its labels {_shown(labels)}",
        where=error.where,
        fix=fix,
    )


def _shown(value: Any) -> str:
    """`a list of 3, each like {'logits': float32 array of 32 x 10}`."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name!r}: {_shown(each)}' for name, each in value.items())}}}"
    if isinstance(value, (list, tuple)):
        each = f", each like {_shown(value[0])}" if value else ""
        return f"{an(value)} of {len(value)}{each}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        kind = "array" if type(value).__name__ == "ndarray" else type(value).__name__
        return f"{value.dtype} {kind} of {' x '.join(map(str, value.shape)) or 'no axis'}"
    return an(value)


def _joined_outputs(outputs: Batches) -> dict[str, np.ndarray]:
    """Join the batches of each output along the first axis.

    Raises:
        ValueError: Their other axes differ, or they have none.
    """
    import numpy as np

    return {name: np.concatenate([batch[name] for batch in outputs]) for name in outputs[0]}


def _joined(labels: Sequence[Any]) -> Any:
    """Join the labels of all batches: as an array, or as a list where rows differ in length; mappings by name.

    Raises:
        ValueError: They can't be joined.
    """
    import numpy as np

    first = labels[0]
    if isinstance(first, Mapping):
        return {name: _joined([each[name] for each in labels]) for name in first}
    if isinstance(first, (list, tuple)):
        flat = [each for batch in labels for each in batch]
        try:
            return np.asarray(flat)
        except ValueError:  # a list of boxes for each sample, say
            return flat
    arrays = [np.asarray(each) for each in labels]
    return np.concatenate(arrays) if arrays[0].ndim else np.stack(arrays)


def _as_score(value: Any, target: str, outputs: Batches, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise StepError(
            f"{target} returned {_shown(value)}; expected a float",
            where=where,
            fix="return float(...)",
        )
    if not math.isfinite(value):
        odd = _odd_output(outputs)
        raise StepError(
            f"{target} returned {float(value)}; expected a finite number{odd}",
            where=where,
            fix="see what that batch feeds the model, or let the metric leave such values out"
            if odd
            else "look for an empty class or a division by zero in it: all outputs are finite",
        )
    return float(value)


def _odd_output(outputs: Batches) -> str:
    """`; of batch 3 output 'logits' holds 2 NaN among ...`; empty if all are finite."""
    for number, batch in enumerate(outputs):
        for name, array in batch.items():
            if odd := odd_values(name, array):
                return f"; of batch {number} output {odd}"
    return ""
