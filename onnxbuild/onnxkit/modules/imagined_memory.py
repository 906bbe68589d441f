"""The memory that a module's values take, found without taking it: PyTorch's fake tensors have shapes alone."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onnxbuild.core.axis import shape_at
from onnxbuild.core.recipe import DummyInput

if TYPE_CHECKING:
    import torch


def imagined_bytes(
    module: torch.nn.Module, inputs: Sequence[DummyInput], sizes: Mapping[str, int]
) -> int | None:
    """Return the most bytes that a module's values take at once; None where forward needs real values.

    Args:
        module: The user's.
        inputs: Inputs, as the recipe declares them.
        sizes: Axis -> elements along it.
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    held = _Held()

    class Count(TorchDispatchMode):  # type: ignore[misc] # torch's own
        def __torch_dispatch__(self, func: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = func(*args, **(kwargs or {}))
            if all(each.alias_info is None for each in func._schema.returns):  # noqa: SLF001
                for each in tree_leaves(made):
                    if isinstance(each, torch.Tensor):
                        held.take(each, each.numel() * each.element_size())
            return made

    try:
        with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
            feeds = {
                each.name: torch.zeros(
                    shape_at(each.shape, sizes), dtype=getattr(torch, each.dtype)
                )
                for each in inputs
            }
            with Count():
                module(**feeds)
    except Exception:  # noqa: BLE001 - whatever user code raises without real values
        return None
    return held.most


class _Held:
    """Counts the bytes of what is alive."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def take(self, value: object, size: int) -> None:
        self.now += size
        self.most = max(self.most, self.now)
        weakref.finalize(value, self._let_go, size)

    def _let_go(self, size: int) -> None:
        self.now -= size
