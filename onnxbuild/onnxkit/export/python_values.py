"""Find the line at which forward takes values out of a tensor: a graph would keep those of the example."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.user_code import line_of
from onnxbuild.onnxkit.export.torch_module import call_forward

if TYPE_CHECKING:
    import torch

_TAKES = {
    "numpy": "`.numpy()`", "__array__": "`.numpy()`", "tolist": "`.tolist()`", "item": "`.item()`",
    "__int__": "`int()`", "__float__": "`float()`", "__bool__": "`if` or `while`", "__index__": "an index",
}  # fmt: skip
"""Method of a tensor -> how code calls it."""


@dataclass(frozen=True, slots=True)
class _Taken:
    line: str
    how: str
    value: str


def values_error(
    module: torch.nn.Module, inputs: Sequence[DummyInput], runs: Sequence[Feeds], where: str
) -> StepError | None:
    """Return the error that names the first value which forward takes out of a tensor; None if none depends on the inputs.

    Args:
        inputs: As the recipe declares them.
        runs: Two feeds or more, of one size each; what is equal for all of them is no value of the inputs.
        where: `recipe:step`, for messages.
    """
    found = [_taken(module, inputs, feeds) for feeds in runs]
    first = found[0]
    for number, each in enumerate(first):
        if any(number >= len(other) or other[number] != each for other in found[1:]):
            return StepError(
                f"forward takes values out of a tensor by {each.how}, and computes with them in Python: a graph has "
                "those of the example alone",
                where=each.line or where,
                fix="compute with tensors from the first to the last line: `(x > 0).sum()` counts, `torch.where` "
                "chooses, `x[index]` takes a tensor; sizes are x.shape[0]",
            )
    return None


def _taken(module: torch.nn.Module, inputs: Sequence[DummyInput], feeds: Feeds) -> list[_Taken]:
    from torch.overrides import TorchFunctionMode

    found: list[_Taken] = []

    class Functions(TorchFunctionMode):  # type: ignore[misc] # torch is Any here
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            value = func(*args, **(kwargs or {}))
            how = _TAKES.get(getattr(func, "__name__", ""))
            line = line_of(traceback.extract_stack(), sys.path) if how else ""
            if how and line:
                found.append(_Taken(line, how, repr(value)))
            return value

    try:
        with Functions():
            call_forward(module, feeds, inputs)
    except StepError:
        pass
    return found
