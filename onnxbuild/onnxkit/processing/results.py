"""`postprocess` -> results: who takes what, under which name; checked by type before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnxbuild.core.errors import did_you_mean
from onnxbuild.onnxkit.processing.chains import PlannedOperation
from onnxbuild.onnxkit.processing.options import (
    NmsOptions,
    PoolOptions,
    PostprocessOperation,
    TopKOptions,
    asked_of,
)
from onnxbuild.onnxkit.processing.plan import NONE_KNOWN, checked
from onnxbuild.onnxkit.processing.values import POSTPROCESS, ProcessingError, ValueType


@dataclass(frozen=True, slots=True)
class Results:
    """Plan of the operations on the model's outputs.

    Attributes:
        operations: In order.
        outputs: Name of an output of the pipeline -> the value.
    """

    operations: tuple[PlannedOperation, ...]
    outputs: Mapping[str, str]


def plan_outputs(
    operations: Sequence[PostprocessOperation],
    inputs: Mapping[str, ValueType],
    outputs: Mapping[str, ValueType],
    wanted: Sequence[str] = (),
    custom: Mapping[str, ValueType] = NONE_KNOWN,
) -> Results:
    """Chain the operations of `postprocess`.

    Args:
        operations: The list.
        inputs: The model's, which some operations take, too.
        outputs: The model's; none where they are not known yet: then any name is one.
        wanted: The pipeline's outputs; empty takes results and outputs of the model that no operation
            takes, results first.
        custom: As for `plan_inputs`.

    Raises:
        ProcessingError: They do not fit each other, or the model.
    """
    names = _Names(inputs, outputs)
    planned = []
    for position, operation in enumerate(operations):
        ((name, options),) = asked_of(operation).items()
        taken = names.taken(name, options, position)
        types = checked((POSTPROCESS, position), name, options, tuple(taken.values()), custom)
        results = (
            (options.to, options.scores) if isinstance(options, TopKOptions) else (options.to,)
        )
        gives = {
            f"{POSTPROCESS}/{position}/{to}": kind for to, kind in zip(results, types, strict=True)
        }
        planned.append(PlannedOperation(POSTPROCESS, position, name, options, taken, gives))
        names.add(name, position, results, gives)
    return Results(tuple(planned), names.delivered(wanted))


class _Names:
    """Names that operations can refer to at a place in the list of `postprocess`."""

    def __init__(self, inputs: Mapping[str, ValueType], outputs: Mapping[str, ValueType]) -> None:
        self._known = bool(outputs)
        self._outputs = dict(outputs)
        self._values = {name: (name, kind) for name, kind in {**inputs, **outputs}.items()}
        self._results: dict[str, str] = {}
        self._used: set[str] = set()
        self._last = next(iter(outputs)) if len(outputs) == 1 else ""

    def taken(self, name: str, options: Any, position: int) -> dict[str, ValueType]:
        """Value -> type of all that an operation takes."""
        if isinstance(options, NmsOptions):
            asked = [options.boxes, options.scores]
        else:
            asked = [options.of or self._only(name, position)]
        if isinstance(options, PoolOptions) and options.mask:
            asked.append(options.mask)
        return dict(self._value(each, name, position) for each in asked)

    def _only(self, name: str, position: int) -> str:
        if self._last or not self._known:
            return self._last
        what = f"{name} does not say what it takes; the model has the outputs {', '.join(self._outputs)}"
        fix = f"write `{name}: {{of: {next(iter(self._outputs))}}}`"
        raise ProcessingError(what, fix, POSTPROCESS, position)

    def _value(self, asked: str, name: str, position: int) -> tuple[str, ValueType]:
        if asked in self._values:
            value, kind = self._values[asked]
            self._used.add(value)
            return value, kind
        if not self._known:
            return asked, ValueType()
        known = list(self._values)
        what = f"{name} takes '{asked}', which is neither a result before it nor an output or input of the model"
        fix = did_you_mean(asked, known) or f"write one of {', '.join(known)}"
        raise ProcessingError(what, fix, POSTPROCESS, position)

    def add(
        self, name: str, position: int, results: Sequence[str], gives: Mapping[str, ValueType]
    ) -> None:
        """Let names mean an operation's results from here on; a result that nothing took must keep its own."""
        for to, (value, kind) in zip(results, gives.items(), strict=True):
            before = self._results.get(to)
            if before is not None and before not in self._used:
                what = f"{name} gives '{to}', which is also the name of a result before it that no operation takes"
                key = "to" if to == results[0] else "scores"
                fix = f"write another name: `{name}: {{{key}: {to}_{position}}}`"
                raise ProcessingError(what, fix, POSTPROCESS, position)
            self._values[to] = (value, kind)
            self._results[to] = value
        self._last = results[0]

    def delivered(self, wanted: Sequence[str]) -> dict[str, str]:
        """Output -> value."""
        if wanted and self._known:
            for each in wanted:
                if each not in self._results and each not in self._outputs:
                    known = [*self._results, *self._outputs]
                    what = f"outputs names '{each}', which is no result and no output of the model"
                    fix = did_you_mean(each, known) or f"write one of {', '.join(known)}"
                    raise ProcessingError(what, fix)
            return {each: self._values[each][0] for each in wanted}
        left = {**self._results}
        left |= {name: name for name in self._outputs if name not in left}
        return {name: value for name, value in left.items() if value not in self._used}
