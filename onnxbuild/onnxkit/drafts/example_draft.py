"""Draft of a recipe for a torch.nn.Module and real inputs of it: names, types, sizes and ranges are theirs."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from onnxbuild.core.draft import Draft
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DTYPES
from onnxbuild.onnxkit.data.user_code import an, call_user
from onnxbuild.onnxkit.drafts.torch_draft import MASKS, in_eval, outputs_in
from onnxbuild.onnxkit.drafts.torch_guesses import BATCH, SEQUENCE
from onnxbuild.onnxkit.frameworks import np

if TYPE_CHECKING:
    import torch

    Example = dict[str, torch.Tensor]

_LARGEST = {BATCH: 8, SEQUENCE: 64}
_USUAL = ((0, 1), (-1, 1), (0, 255))
"""Ranges that data are usually scaled to."""
_DIGITS = 3
"""Significant digits of `low` and `high`."""


def draft_of_examples(model: object, given: object, target: str) -> Draft:
    """Return the draft of a module's recipe by one or two examples of its inputs.

    Sizes in which two examples differ are axes. Of one example the first size is, if all inputs have the same and
    forward runs with each row twice.

    Args:
        given: An example (a mapping of name -> array, a tuple by position, or an array), or some of them in a list or
            a generator.
        target: Name of the callable that gave it, for messages.

    Raises:
        StepError: The model is no module, or forward does not run with the examples.
    """
    import torch

    if not isinstance(model, torch.nn.Module):
        raise StepError(
            f"the model is {an(model)}, which says its inputs; examples are for a torch.nn.Module",
            where=target,
            fix="leave `--inputs` out",
        )
    module = in_eval(model)
    examples = [_named(module, each, target) for each in _examples(given)]
    if not examples:
        raise StepError(f"{target} gave no example", where=target, fix="return {name: array}")
    first = examples[0]
    for other in examples[1:]:
        _check_alike(first, other, target)
    values = [_run(module, each, target) for each in examples]
    if len(examples) == 1 and (doubled := _doubled(module, first)) is not None:
        examples.append(doubled)
    outputs = outputs_in(values[0], first)
    shapes, axes = _axes(examples)
    inputs = {
        name: {"dtype": _dtype(each, name, target), "shape": shapes[name], **_range(name, each)}
        for name, each in _joined(examples).items()
    }
    said = f"as {target} gave it; low and high are those of its values"
    return Draft(
        {
            "dummy_inputs": inputs,
            **({"outputs": outputs.names} if outputs else {}),
            **({"dynamic_axes": axes} if axes else {}),
        },
        {
            **{f"dummy_inputs.{name}": said for name in inputs},
            **({"outputs": outputs.about} if outputs else {}),
        },
    )


def _examples(given: object) -> list[Any]:
    """One or two examples."""
    if isinstance(given, (list, tuple)) and given and isinstance(given[0], (Mapping, list, tuple)):
        return list(given[:2])
    if isinstance(given, Iterator):
        return list(islice(given, 2))
    return [given]


def _named(module: torch.nn.Module, given: Any, target: str) -> Example:
    """An example's tensors, by the names of forward's parameters."""
    import torch

    names = list(inspect.signature(module.forward).parameters)
    if not isinstance(given, Mapping):
        values = given if isinstance(given, (list, tuple)) else (given,)
        given = dict(zip(names, values, strict=False))
    found = {}
    for name, each in given.items():
        tensor = each
        if not isinstance(each, torch.Tensor):
            array = np.asarray(each)
            if array.dtype.kind not in "biuf":
                raise StepError(
                    f"{target} gave {an(each)} as '{name}'; expected an array or a tensor of numbers",
                    where=target,
                    fix="return {name: array} with the names of forward's parameters: "
                    + ", ".join(names),
                )
            tensor = torch.from_numpy(np.array(array))
        found[str(name)] = tensor.detach()
    return found


def _check_alike(first: Example, other: Example, target: str) -> None:
    for name in {**first, **other}:
        one, two = first.get(name), other.get(name)
        if one is None or two is None or (one.dtype, one.ndim) != (two.dtype, two.ndim):
            shown = [
                "missing" if each is None else f"{each.dtype} of {each.ndim} axes"
                for each in (one, two)
            ]
            raise StepError(
                f"{target} gave '{name}' as {shown[0]} and {shown[1]}; expected one type and number of axes",
                where=target,
                fix="give examples that differ in sizes alone",
            )


def _run(module: torch.nn.Module, example: Example, target: str) -> object:
    import torch

    def call() -> object:
        with torch.no_grad():
            return module(**example)

    return call_user(call, f"forward, with the inputs of {target},", target)


def _doubled(module: torch.nn.Module, example: Example) -> Example | None:
    """Each row twice, where forward runs with that."""
    sizes = {each.shape[0] if each.ndim else None for each in example.values()}
    if len(sizes) > 1 or None in sizes:
        return None
    doubled = {name: each.repeat_interleave(2, dim=0) for name, each in example.items()}
    try:
        _run(module, doubled, "")
    except StepError:
        return None
    return doubled


def _joined(examples: Sequence[Example]) -> dict[str, list[torch.Tensor]]:
    return {name: [each[name] for each in examples] for name in examples[0]}


def _axes(
    examples: Sequence[Example],
) -> tuple[dict[str, list[int | str]], dict[str, dict[str, int]]]:
    """The shape of each input, and the axes: sizes that differ in the same way are one."""
    names: dict[tuple[int, ...], str] = {}
    shapes: dict[str, list[int | str]] = {}
    for name, tensors in _joined(examples).items():
        shapes[name] = []
        for place, sizes in enumerate(zip(*(each.shape for each in tensors), strict=True)):
            if len(set(sizes)) > 1 and sizes not in names:
                names[sizes] = _axis_name(name, place, tensors[0].ndim, set(names.values()))
            shapes[name].append(names.get(sizes, sizes[0]) if len(set(sizes)) > 1 else sizes[0])
    axes = {}
    for sizes, axis in names.items():
        example = sizes[0] if sizes[0] > 1 else max(sizes)  # exporters bake a size of 1 in
        axes[axis] = {"min": 1, "max": max(_LARGEST.get(axis, 64), *sizes), "example": example}
    return shapes, axes


def _axis_name(name: str, place: int, rank: int, taken: set[str]) -> str:
    usual = {
        0: BATCH,
        1: SEQUENCE if rank < 4 else "",  # noqa: PLR2004 - pictures have channels there
        2: "height" if rank == 4 else "",  # noqa: PLR2004
        3: "width",
    }.get(place, "")
    if usual and usual not in taken:
        return usual
    stem = "".join(c if c.isalnum() else "_" for c in name)
    return f"{stem}_{usual or place}"


def _dtype(tensors: Sequence[torch.Tensor], name: str, target: str) -> str:
    found = str(tensors[0].dtype).removeprefix("torch.")
    if found not in DTYPES:
        raise StepError(
            f"{target} gave '{name}' as {found}; expected one of {', '.join(DTYPES)}",
            where=target,
            fix="convert it in forward, and give what it is converted from",
        )
    return found


def _range(name: str, tensors: Sequence[torch.Tensor]) -> dict[str, Any]:
    """The least and the greatest value, as a recipe has them; a mask, or a constant, as such."""
    import torch

    if tensors[0].dtype == torch.bool or not any(each.numel() for each in tensors):
        return {}
    low = min(each.min().item() for each in tensors if each.numel())
    high = max(each.max().item() for each in tensors if each.numel())
    is_float = tensors[0].dtype.is_floating_point
    if MASKS.fullmatch(name) and low >= 0 and high == 1 and not is_float and tensors[0].ndim > 1:
        return {"mask": "right"}
    if not math.isfinite(low) or not math.isfinite(high):
        return {}
    if low == high:
        return {"fill": low}
    if not is_float:
        return {"low": low, "high": high + 1}
    for least, most in _USUAL:
        if least <= low and high <= most and high - low > (most - least) / 2:
            return {"low": least, "high": most}
    return {"low": _rounded(low, math.floor), "high": _rounded(high, math.ceil)}


def _rounded(value: float, outward: Any) -> float:
    """A value of three digits that is not further inside the range."""
    if value == 0:
        return 0
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - _DIGITS + 1)
    return float(f"{outward(value / unit) * unit:.{_DIGITS}g}")
