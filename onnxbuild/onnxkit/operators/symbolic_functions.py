"""Autograd functions that say by a `symbolic` method what they are in ONNX."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType


def symbolic_functions(forward: Callable[[], object]) -> tuple[str, ...]:
    """Names of the torch.autograd.Function classes with a `symbolic` that forward applies, sorted.

    Only the torchscript exporter calls `symbolic`; dynamo takes apart what `forward` does. Calls of
    `apply` are seen by the interpreter's profiling hook: models keep it under other names
    (`swish = Swish.apply`), where a replaced `apply` would never be called.

    Args:
        forward: Runs the module once.
    """
    import torch

    if not any(hasattr(each, "symbolic") for each in _below(torch.autograd.Function)):
        return ()  # as nearly always: forward need not run once more
    apply = torch.autograd.Function.apply.__func__.__code__
    found: set[str] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is apply:
            function = frame.f_locals["cls"]
            if hasattr(function, "symbolic"):
                found.add(function.__name__)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        forward()
    finally:
        sys.setprofile(before)
    return tuple(sorted(found))


def _below(kind: type) -> Iterator[type]:
    below: list[type] = kind.__subclasses__()
    for each in below:
        yield each
        yield from _below(each)
