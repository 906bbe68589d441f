"""Find what in a module does something else in training mode; it is exported in eval mode all the same."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.modules.program_modules import training_operators

if TYPE_CHECKING:
    import torch


def training_notes(module: torch.nn.Module, shown: str) -> tuple[str, ...]:
    """A line on a module in training mode, where that makes a difference; nothing else.

    Args:
        module: As it was returned or loaded.
        shown: What gave it.
    """
    operators = training_operators(module)
    if operators:
        what = f"{shown} was exported in training mode ({', '.join(operators)})"
        return (f"{what}, which stays so: call `.eval()` on the module, and torch.export again",)
    found = Counter(_kind(each) for each in module.modules() if _differs(each))
    if found:
        layers = ", ".join(f"{count} {name}" for name, count in sorted(found.items()))
        return (f"{shown} is in training mode; taken in eval mode, which changes {layers}",)
    return ()


def _differs(module: torch.nn.Module) -> bool:
    """Return whether a module is in training mode and its own forward's code reads `training`."""
    import torch

    if isinstance(module, torch.jit.ScriptModule):
        has_forward = hasattr(module, "forward")
        return bool(
            has_forward and getattr(module, "training", False) and "training" in module.code
        )
    code = getattr(getattr(type(module), "forward", None), "__code__", None)
    share = getattr(module, "p", getattr(module, "dropout", None))
    is_off = isinstance(share, int | float) and share == 0
    return bool(
        module.training and code is not None and "training" in code.co_names and not is_off
    )


def _kind(module: torch.nn.Module) -> str:
    return str(getattr(module, "original_name", type(module).__name__))
