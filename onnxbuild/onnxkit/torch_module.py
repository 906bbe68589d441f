"""The user's PyTorch module: load it, check what it takes, run it, flatten what it gives."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError, did_you_mean
from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.feeds import Feeds
from onnxbuild.onnxkit.user_code import an, call_user

if TYPE_CHECKING:
    import numpy as np
    import torch


def make_torch_deterministic() -> None:
    """Fix the seed, use one thread (sums keep their order) and deterministic kernels.

    The fused fast path of torch.nn.TransformerEncoder goes too: no exporter has its operator, and
    it computes something else at padded positions.
    """
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.set_deterministic_debug_mode("warn")  # its other name imports a compiler, for 0.8 s
    torch.backends.mha.set_fastpath_enabled(False)


def load_module(context: StepContext, entrypoint: Entrypoint) -> torch.nn.Module:
    """The module that the user's callable returns, in eval mode, without gradients.

    Raises:
        StepError: The callable is missing, raises, or returns something else.
    """
    import torch

    load = context.load(entrypoint)
    with torch.no_grad():
        module = call_user(lambda: load(**entrypoint.args), entrypoint.target, context.where)
    if not isinstance(module, torch.nn.Module):
        raise StepError(
            f"{entrypoint.target} returned {an(module)}; expected a torch.nn.Module",
            where=context.where,
            fix="return the module itself"
            + (", an instance and not its class" if isinstance(module, type) else ""),
        )
    module.requires_grad_(requires_grad=False)
    return module.eval()


def check_signature(module: torch.nn.Module, inputs: Sequence[DummyInput], where: str) -> None:
    """See that forward takes every dummy input, and that nothing it requires is missing.

    Raises:
        StepError: It does not, or something is.
    """
    parameters = inspect.signature(module.forward).parameters
    kinds = inspect.Parameter
    by_name = {
        name: parameter
        for name, parameter in parameters.items()
        if parameter.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)
    }
    takes_any = any(p.kind is kinds.VAR_KEYWORD for p in parameters.values())
    names = [each.name for each in inputs]
    shown = f"{type(module).__name__}.forward"
    for name in names:
        if name not in by_name and not takes_any:
            near = did_you_mean(name, by_name)
            raise StepError(
                f"dummy input '{name}' is not a parameter of {shown}, which takes "
                f"{', '.join(by_name) or 'none'}",
                where=where,
                fix=near or f"rename or remove `dummy_inputs.{name}`",
            )
    for name, parameter in by_name.items():
        if parameter.default is kinds.empty and name not in names:
            raise StepError(
                f"{shown} requires '{name}', which `dummy_inputs` does not give; it gives "
                f"{', '.join(names) or 'none'}",
                where=where,
                fix=f"add `{name}: {{dtype: ..., shape: [...]}}` to `dummy_inputs`, or give "
                "the parameter a default",
            )


def run_module(module: torch.nn.Module, feeds: Feeds, where: str = "PyTorch") -> list[np.ndarray]:
    """Call forward by keyword and give its flattened outputs as contiguous arrays.

    Raises:
        StepError: forward raises, or gives something that is no tensor.
    """
    import torch

    tensors = {name: torch.from_numpy(array.copy()) for name, array in feeds.items()}
    with torch.no_grad():
        target = f"{type(module).__name__}.forward"
        value = call_user(lambda: module(**tensors), target, where)
    return [_as_array(tensor, where) for tensor in flatten_outputs(value, where)]


def flatten_outputs(value: object, where: str = "") -> list[torch.Tensor]:
    """The tensors in what forward returned, depth first.

    Tuples, lists and named tuples are taken in their order, mappings (HuggingFace's ModelOutput
    too) in insertion order, dataclasses in the order of their fields; None is dropped.

    Raises:
        StepError: Something else is found, or no tensor at all.
    """
    flat = list(_flatten(value, "output", where))
    if not flat:
        raise StepError(
            "forward returned no tensor", where=where, fix="return at least one torch.Tensor"
        )
    return flat


def output_names(declared: Sequence[str], count: int, where: str) -> tuple[str, ...]:
    """Names for the flattened outputs: the declared ones, or output_0, output_1, ...

    Raises:
        StepError: Their number is not that of the outputs.
    """
    if not declared:
        return tuple(f"output_{n}" for n in range(count))
    if len(declared) != count:
        raise StepError(
            f"`outputs` names {len(declared)} ({', '.join(declared)}) but forward returns {count} "
            f"tensor{'s' if count != 1 else ''} when flattened",
            where=where,
            fix=f"name {count}, or return fewer from a small wrapper module",
        )
    return tuple(declared)


def _flatten(value: object, path: str, where: str) -> list[torch.Tensor]:
    import torch

    if value is None:
        return []
    if isinstance(value, torch.Tensor):
        return [value]
    items: list[tuple[str, object]]
    if isinstance(value, Mapping):
        items = [(f"{path}[{key!r}]", item) for key, item in value.items()]
    elif isinstance(value, (tuple, list)):
        items = [(f"{path}[{n}]", item) for n, item in enumerate(value)]
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        items = [(f"{path}.{f.name}", getattr(value, f.name)) for f in dataclasses.fields(value)]
    else:
        raise StepError(
            f"forward's {path} is {an(value)}; expected a tensor, or a tuple, list, "
            "dict or dataclass of tensors",
            where=where,
            fix="wrap the model in a small module whose forward returns tensors alone",
        )
    return [tensor for name, item in items for tensor in _flatten(item, name, where)]


def _as_array(tensor: torch.Tensor, where: str) -> np.ndarray:
    import numpy as np

    try:
        array: np.ndarray = np.array(tensor.detach().cpu().numpy(), order="C")
    except TypeError as error:  # bfloat16, float8, sparse: numpy has no such thing
        raise StepError(
            f"forward returns a tensor of {tensor.dtype}, which numpy can't hold",
            where=where,
            fix="return `.float()` of it",
        ) from error
    return array


def refuse_nan(
    names: Sequence[str], outputs: Sequence[np.ndarray], point: str, where: str
) -> None:
    """Fail on NaN in PyTorch's own outputs: nothing can be compared with them.

    Raises:
        StepError: Names the output and the point.
    """
    import numpy as np

    for name, array in zip(names, outputs, strict=True):
        if array.dtype.kind == "f" and bool(np.isnan(array).any()):
            raise StepError(
                f"PyTorch's own output '{name}' holds {int(np.isnan(array).sum())} NaN among "
                f"{array.size} elements at point '{point}'",
                where=where,
                fix="mend the model, or give the inputs the values it expects "
                "(`low`, `high`, `fill` in `dummy_inputs`)",
            )
