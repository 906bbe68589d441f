"""Measure how far rounding alone moves a model's outputs: run it again with every value inside moved by its last bit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.model.graphs import opset_of
from onnxbuild.onnxkit.model.scopes import all_names, name_maker

if TYPE_CHECKING:
    from onnxbuild.onnxkit.data.feeds import Feeds

    Outputs = Mapping[str, np.ndarray]

LAST_BIT = 2.0**-23
"""Greatest relative distance of a float32 from its neighbour."""

_RUNS = 3

_GREATEST = 1e-4
"""Greatest share of an output's largest value that counts as rounding; what moves more takes another branch."""


def measured_rounding(run: Callable[[Feeds, int], Outputs], feeds: Feeds) -> dict[str, float]:
    """Return how far each float32 output moves, as a share of its largest value; none that moves more than rounding.

    Args:
        run: (feeds, seed) -> outputs, every value inside moved by its last bit at random, those of seed 0 by nothing.
    """
    expected = run(feeds, 0)
    found = {name: 0.0 for name, array in expected.items() if array.dtype == np.float32}
    for seed in range(1, _RUNS + 1):
        moved = run(moved_feeds(feeds, seed), seed)
        for name in list(found):
            share = _share(expected[name], moved[name])
            found[name] = max(found[name], share)
            if not share <= _GREATEST:
                del found[name]
    return {name: share for name, share in found.items() if share}


def with_reordered(
    shares: Mapping[str, float], exact: Outputs, reordered: Outputs
) -> dict[str, float]:
    """Return the shares at a point, none below what another order of the same sums moves there, up to the greatest that counts as rounding.

    Args:
        shares: As of `measured_rounding`, of another point.
        exact: Outputs at this point.
        reordered: The same with ONNX Runtime's optimizations.
    """
    found = dict(shares)
    for name, share in shares.items():
        moved = _share(exact[name], reordered[name])
        if moved < float("inf"):
            found[name] = max(share, min(moved, _GREATEST))
    return found


def moved_feeds(feeds: Feeds, seed: int) -> Feeds:
    """Return feeds whose float32 values are moved by their last bit at random; zeros and whole numbers stay."""
    random = np.random.default_rng(seed)
    moved: dict[str, np.ndarray] = {}
    for name, array in feeds.items():
        moved[name] = array
        if array.dtype == np.float32:
            bits = random.uniform(-LAST_BIT, LAST_BIT, array.shape).astype(np.float32)
            whole = (array == np.floor(array)) | ~np.isfinite(array)
            moved[name] = np.where(whole, array, array + array * bits).astype(np.float32)
    return moved


def greatest_rounding(output: np.ndarray) -> float:
    """Return the most that rounding is said to move an output, whatever was measured."""
    return _GREATEST * _largest(output)


def rounding_at(shares: Mapping[str, float], outputs: Outputs) -> dict[str, float]:
    """Return how far rounding moves outputs of one point, in their unit, from the shares that were measured."""
    return {
        name: share * _largest(outputs[name]) for name, share in shares.items() if name in outputs
    }


def _share(expected: np.ndarray, moved: np.ndarray) -> float:
    if expected.shape != moved.shape or not expected.size:
        return 0.0 if expected.shape == moved.shape else float("inf")
    finite = np.isfinite(expected)
    if not np.array_equal(finite, np.isfinite(moved)):
        return float("inf")
    largest = _largest(expected)
    distance = float(np.abs(moved[finite] - expected[finite]).max(initial=0.0))
    return distance / largest if largest else float(distance > 0) and float("inf")


def _largest(array: np.ndarray) -> float:
    return float(np.abs(array[np.isfinite(array)]).max(initial=0.0))


_FIRST_OPSET = 11
"""The first in which Equal takes floats."""


def rounding_noise(seed: int) -> AbstractContextManager[Any]:
    """Move what each operator makes at random: float32 values that are neither whole numbers nor infinite.

    What is a view, or was written in place, stays as it is.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_map_only

    random = torch.Generator().manual_seed(seed)

    def moved(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dtype != torch.float32 or tensor.device.type != "cpu":
            return tensor
        bits = torch.rand(tensor.shape, generator=random).mul_(2).sub_(1).mul_(LAST_BIT)
        whole = (tensor == tensor.floor()) | ~tensor.isfinite()
        return torch.where(whole, tensor, tensor + tensor * bits)

    class Noise(TorchDispatchMode):  # type: ignore[misc] # torch's own
        def __torch_dispatch__(self, func: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = func(*args, **(kwargs or {}))
            if _returns_alias(func._schema):  # noqa: SLF001 - operators say it nowhere else
                return made
            return tree_map_only(torch.Tensor, moved, made)

    return Noise()


def _returns_alias(schema: Any) -> bool:
    return any(each.alias_info is not None for each in schema.returns)


def add_rounding_noise(model: onnx.ModelProto) -> bool:
    """Move what each node of the main graph makes at random, in place: floats that are no whole numbers, nor infinite.

    Args:
        model: Each value inside has an entry in `value_info`.

    Returns: Whether its opset has what that takes.
    """
    from onnx.helper import make_node

    if opset_of(model) < _FIRST_OPSET:
        return False
    graph = model.graph
    floats = {
        value.name
        for value in (*graph.value_info, *graph.output)
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    }
    make = name_maker(all_names(model))
    nodes = list(graph.node)
    del graph.node[:]
    del graph.value_info[:]
    for node in nodes:
        added = []
        for n, name in enumerate(node.output):
            if name not in floats:
                continue
            exact, bits, change, moved, floor, whole = (
                make(f"{name}/{word}") for word in ("exact", "bits", "by", "to", "floor", "whole")
            )
            node.output[n] = exact
            noise = {"low": -LAST_BIT, "high": LAST_BIT, "seed": float(len(graph.node) + n)}
            added += [
                make_node("RandomUniformLike", [exact], [bits], **noise),
                make_node("Mul", [exact, bits], [change]),
                make_node("Add", [exact, change], [moved]),
                make_node("Floor", [exact], [floor]),
                make_node("Equal", [exact, floor], [whole]),
                make_node("Where", [whole, exact, moved], [name]),
            ]  # fmt: skip
        graph.node.extend([node, *added])
    return True
