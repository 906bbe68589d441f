"""Run a module as its user does, and compare: this package changes settings of PyTorch to export and to compare."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.accuracy.comparison import mismatch
from onnxbuild.onnxkit.data.feeds import Feeds, is_free, value_range
from onnxbuild.onnxkit.export.agreement import graph_breach
from onnxbuild.onnxkit.export.torch_module import TorchSettings, run_module
from onnxbuild.onnxkit.frameworks import np

if TYPE_CHECKING:
    import torch

_FAST_PATH = "torch.backends.mha.set_fastpath_enabled(False)"


def has_fast_path(module: torch.nn.Module) -> bool:
    """Return whether a part of a module computes something else in eval mode than in training: PyTorch's fused encoder."""
    import torch

    kinds = (torch.nn.TransformerEncoderLayer, torch.nn.MultiheadAttention)
    return any(isinstance(each, kinds) for each in module.modules())


def padded_feeds(inputs: Sequence[DummyInput], feeds: Feeds) -> Iterator[Feeds]:
    """Yield feeds whose masks leave out the end of the last row: the fused encoder takes no others for padding.

    Args:
        inputs: Inputs, as the recipe declares them; those drawn from 0 and 1, of two or more axes, are masks.
        feeds: One set of inputs.
    """
    masks = [
        each.name
        for each in inputs
        if is_free(each) and value_range(each) == (0, 1) and feeds[each.name].ndim > 1
    ]
    for padding in (1, 0) if masks else ():
        padded: Feeds = {}
        for name in masks:
            padded[name] = array = np.full_like(feeds[name], 1 - padding)
            array[-1, ..., (array.shape[-1] + 1) // 2 :] = padding
        yield feeds | padded


def refuse_other_settings(
    module: torch.nn.Module,
    feeds: Feeds,
    outputs: Mapping[str, np.ndarray],
    settings: TorchSettings,
    where: str,
    *,
    inputs: Sequence[DummyInput],
    shown: str,
) -> None:
    """Run forward with PyTorch's settings as the user has them, in inference mode, and compare.

    Args:
        module: Module, in eval mode.
        feeds: One set of inputs.
        outputs: Output name -> array of a run under this package's settings.
        settings: PyTorch's before this package changed them.
        where: `recipe:step`, for messages.
        inputs: Their dtypes, where numpy lacks one.
        shown: Name of the point.

    Raises:
        StepError: An output differs beyond rounding; names the setting.
    """
    import torch

    def difference(*contexts: AbstractContextManager[object]) -> str:
        with contextlib.ExitStack() as stack, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nested tensors, of the fused path, are a prototype
            for each in contexts:
                stack.enter_context(each)
            try:
                found = run_module(
                    module, feeds, where, tuple(outputs), inputs=inputs, as_the_user=True
                ).outputs
            except StepError:  # in inference mode some tensors can't be written to
                return ""
        return _difference(outputs, found)

    changed: dict[str, Callable[[], AbstractContextManager[object]]] = {
        _FAST_PATH: nullcontext,
        f"torch.set_num_threads({torch.get_num_threads()})": partial(_threads, settings.threads),
        "torch.set_deterministic_debug_mode": partial(_determinism, settings.determinism),
    }
    others = list(changed.values())[1:]
    reason = difference(torch.inference_mode(), *(each() for each in others))
    if not reason:
        return
    what = f"users get other outputs than an export can have: at point '{shown}', {reason}"
    if has_fast_path(module) and difference():
        raise StepError(
            f"{what}. PyTorch's fused path of nn.TransformerEncoder is the reason (`{_FAST_PATH}` turns it "
            "off): it gives zeros at padded positions, and no exporter has it",
            where=where,
            fix="write `enable_nested_tensor=False` in nn.TransformerEncoder(...), or "
            f"`{_FAST_PATH}` in the model's file and wherever you run the model",
        )
    guilty = [name for name, each in list(changed.items())[1:] if difference(each())]
    raise StepError(
        f"{what}. The reason is `{guilty[0] if guilty else 'torch.inference_mode()'}`",
        where=where,
        fix="write that line in the model's file and wherever you run the model, or let forward not depend on it",
    )


def _difference(ours: Mapping[str, np.ndarray], users: Mapping[str, np.ndarray]) -> str:
    for name, one in ours.items():
        other = users[name]
        if one.dtype.kind == "f" and one.shape == other.shape:  # users look for no value in a NaN
            known = ~np.isnan(other)
            one, other = np.where(known, one, 0), np.where(known, other, 0)  # noqa: PLW2901
        if reason := mismatch(one, other):
            return f"output '{name}' has {reason} for users"
        if worst := graph_breach(one, other):
            return (
                f"output '{name}' is {worst.actual:.6g} for users and {worst.expected:.6g} in an export at "
                f"{list(worst.index)}"
            )
    return ""


@contextlib.contextmanager
def _threads(number: int) -> Iterator[None]:
    import torch

    ours = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(ours)


@contextlib.contextmanager
def _determinism(mode: int) -> Iterator[None]:
    import torch

    ours = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode(mode)
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(ours)
