"""Find the line of the user's code that calls an operator which an exporter can't translate."""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.user_code import line_of
from onnxbuild.onnxkit.export.torch_module import run_module

if TYPE_CHECKING:
    import torch


def line_of_operator(module: torch.nn.Module, feeds: Feeds, operator: str) -> str:
    """`models/mine.py:7`: the user's line that first calls an operator; empty where none is seen.

    Args:
        module: Module whose forward is run and watched.
        feeds: Feeds that it runs on.
        operator: An exporter's name of it: `aten::histc`, `prims.bessel_j0`.
    """
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    wanted = _bare(operator)
    lines: list[str] = []

    def look(name: str) -> None:
        if _bare(name) == wanted and not lines:
            lines.append(line_of(traceback.extract_stack(), sys.path))

    class Functions(TorchFunctionMode):  # type: ignore[misc] # torch is Any here
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            look(getattr(func, "__name__", ""))
            return func(*args, **(kwargs or {}))

    class Operators(TorchDispatchMode):  # type: ignore[misc] # torch is Any here
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            look(str(func.overloadpacket))
            return func(*args, **(kwargs or {}))

    try:
        with torch.no_grad(), Functions(), Operators():
            run_module(module, feeds)
    except (StepError, RuntimeError):
        return ""
    return lines[0] if lines else ""


def _bare(operator: str) -> str:
    """`aten::_adaptive_avg_pool2d` -> `adaptive_avg_pool2d`."""
    last = operator.replace("::", ".").split(".")
    name = last[1] if len(last) > 1 else last[0]
    return name.strip("_").removeprefix("special_")
