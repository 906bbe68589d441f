"""Put a module in the state in which it is exported and run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.modules.program_modules import training_operators

if TYPE_CHECKING:
    import torch


_COMPILED, _ORIGINAL, _CALL = "OptimizedModule", "_orig_mod", "_compiled_call_impl"
"""The class that `torch.compile` returns, what it holds, and what `module.compile()` sets."""


def set_for_inference(module: torch.nn.Module, shown: str, where: str) -> None:
    """Put a module in eval mode, without gradients, in place.

    Args:
        where: `recipe:step`, for messages.

    Raises:
        StepError: A lazy layer has no weights yet.
    """
    import torch

    for name, each in (*module.named_parameters(), *module.named_buffers()):
        if torch.nn.parameter.is_lazy(each):
            raise StepError(
                f"{shown} returned a module whose '{name}' has no shape yet: a lazy layer makes its weights in "
                "its first call",
                where=where,
                fix="call the module once on an example before its weights are loaded and it is returned",
            )
    module.requires_grad_(requires_grad=False)
    module.eval()  # its result is None where a `train` of the user's own returns nothing


def is_compiled(module: torch.nn.Module) -> bool:
    """Return whether a module, or one in it, is compiled when it is called."""
    return any(_is_wrapper(each) or getattr(each, _CALL, None) for each in module.modules())


def compiled_note(made: object, shown: str) -> tuple[str, ...]:
    """Return a line for the user on a module that is compiled; none of anything else.

    Args:
        made: As it was returned.
    """
    import torch

    if not isinstance(made, torch.nn.Module) or not is_compiled(made):
        return ()
    return (f"{shown} returned a module of torch.compile; taken as it was before that",)


def eager(module: torch.nn.Module) -> torch.nn.Module:
    """Return the module that `torch.compile` was given; those in it are put back in place.

    Args:
        module: Any. Functions that are compiled by themselves stay so.
    """
    found = getattr(module, _ORIGINAL) if _is_wrapper(module) else module
    for each in list(found.modules()):
        if getattr(each, _CALL, None) is not None:
            setattr(each, _CALL, None)
        for name, child in each.named_children():
            if _is_wrapper(child):
                setattr(each, name, eager(child))
    return found


def _is_wrapper(module: object) -> bool:
    return type(module).__name__ == _COMPILED and hasattr(module, _ORIGINAL)


def training_notes(module: torch.nn.Module, shown: str) -> tuple[str, ...]:
    """A line on a module in training mode, where that makes a difference; nothing else.

    Args:
        module: As it was returned or loaded.
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
    if not module.training or code is None or "training" not in code.co_names:
        return False
    share = getattr(module, "p", getattr(module, "dropout", None))
    return not (isinstance(share, int | float) and share == 0)


def _kind(module: torch.nn.Module) -> str:
    return str(getattr(module, "original_name", type(module).__name__))
