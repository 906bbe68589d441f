"""A module without `torch.compile`: exporters follow its own code, and the reference is eager PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_COMPILED, _ORIGINAL, _CALL = "OptimizedModule", "_orig_mod", "_compiled_call_impl"
"""The class that `torch.compile` returns, what it holds, and what `module.compile()` sets."""


def is_compiled(module: torch.nn.Module) -> bool:
    """Return whether a module, or one in it, is compiled when it is called."""
    return any(_is_wrapper(each) or getattr(each, _CALL, None) for each in module.modules())


def compiled_note(made: object, shown: str) -> tuple[str, ...]:
    """Return a line for the user on a module that is compiled; none of anything else.

    Args:
        made: As it was returned.
        shown: What returned it.
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
