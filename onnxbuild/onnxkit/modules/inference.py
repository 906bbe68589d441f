"""Put a module in the state in which it is exported and run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError

if TYPE_CHECKING:
    import torch


def set_for_inference(module: torch.nn.Module, shown: str, where: str) -> None:
    """Put a module in eval mode, without gradients, in place.

    Args:
        module: The user's.
        shown: What gave it.
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
