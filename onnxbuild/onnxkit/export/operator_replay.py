"""Find the operator that an exporter translates wrongly: each call of forward alone, on the inputs that it has in PyTorch."""

from __future__ import annotations

import sys
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.user_code import line_of
from onnxbuild.onnxkit.export.agreement import operator_breach
from onnxbuild.onnxkit.export.errors import WrongOperatorError
from onnxbuild.onnxkit.export.exporters import EXPORTERS, ExportRequest, export_graph
from onnxbuild.onnxkit.export.torch_module import run_module
from onnxbuild.onnxkit.frameworks import np, onnxruntime
from onnxbuild.onnxkit.sessions.open import session_errors

if TYPE_CHECKING:
    import torch

_CALLS_OF_A_LINE = 2
"""Calls of one operator on one line that are replayed: blocks of a model repeat."""

_MOST_BYTES = 1 << 30
"""Memory that inputs and results of the calls may take together; later calls are left out."""

_MOST_EXPORTS = 12
"""Exports that are tried where some calls can't be exported alone."""

_UNORDERED = {"argsort", "unique", "multinomial", "empty", "empty_like", "new_empty"}
"""Functions whose results are not defined for all elements."""

_NOT_VALUES = {"__get__", "__set__", "detach", "numpy", "data_ptr", "size", "dim"}


@dataclass(frozen=True, slots=True)
class WrongOperator:
    """A call that a graph computes otherwise, on the same inputs.

    Attributes:
        name: The function's name in PyTorch.
        line: Line of the user's that calls it; empty where none does.
        expected: PyTorch's value, at the element that is farthest off.
        actual: ONNX Runtime's.
        other: Exporter that translates it right; empty if none does.
    """

    name: str
    line: str
    expected: float
    actual: float
    other: str


@dataclass(frozen=True, slots=True)
class _Call:
    name: str
    line: str
    function: Any
    leaves: list[Any]
    structure: Any
    results: tuple[torch.Tensor, ...]


def wrong_operator(exporter: str, request: ExportRequest, feeds: Feeds) -> WrongOperator | None:
    """Return the first call of forward that an export computes otherwise; None where each is right by itself.

    Args:
        exporter: Exporter that made the graph.
        request: Request of that export.
        feeds: Feeds on which the graph differs from PyTorch.
    """
    calls = _recorded(request, feeds)
    found = _first_wrong(exporter, request, calls, [_MOST_EXPORTS])
    if found is None:
        return None
    call, expected, actual = found
    other = next(each for each in EXPORTERS if each != exporter)
    is_right = _first_wrong(other, request, [call], [1], unknown_is_wrong=True) is None
    return WrongOperator(call.name, call.line, expected, actual, other if is_right else "")


def _recorded(request: ExportRequest, feeds: Feeds) -> list[_Call]:
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._pytree import tree_flatten

    calls: list[_Call] = []
    counts: Counter[tuple[str, str]] = Counter()
    room = _MOST_BYTES

    class Record(TorchFunctionMode):  # type: ignore[misc] # torch is Any here
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            nonlocal room
            name = getattr(func, "__name__", "")
            leaves, structure = tree_flatten((args, kwargs or {}))
            given = [each for each in leaves if isinstance(each, torch.Tensor)]
            if not given or name in _NOT_VALUES or name in _UNORDERED or room <= 0:
                return func(*args, **(kwargs or {}))
            line = line_of(traceback.extract_stack(), sys.path)
            if counts[name, line] >= _CALLS_OF_A_LINE:
                return func(*args, **(kwargs or {}))
            held = [_copy(each) for each in leaves]
            result = func(*args, **(kwargs or {}))
            made = result if name != "__setitem__" else given[0]
            results = _real_results(made)
            if results and all(_plain(each) for each in (*given, *results)):
                counts[name, line] += 1
                room -= sum(each.nbytes for each in (*given, *results))
                calls.append(_Call(name.strip("_"), line, func, held, structure, results))
            return result

    try:
        with torch.no_grad(), Record():
            run_module(request.module, feeds, request.where, inputs=request.inputs)
    except (StepError, RuntimeError, TypeError):
        return calls
    return calls


def _real_results(made: Any) -> tuple[torch.Tensor, ...]:
    """Copies of all tensors of what a function returned; a complex one as its real and imaginary parts."""
    import torch
    from torch.utils._pytree import tree_flatten

    found = [each for each in tree_flatten(made)[0] if isinstance(each, torch.Tensor)]
    return tuple((torch.view_as_real(e) if e.is_complex() else e).clone() for e in found)


def _copy(leaf: Any) -> Any:
    """A tensor as it is before the call, which may write to it; weights are not copied."""
    import torch

    if not isinstance(leaf, torch.Tensor) or isinstance(leaf, torch.nn.Parameter):
        return leaf
    return leaf.clone()


def _plain(tensor: torch.Tensor) -> bool:
    """Return whether numpy and ONNX Runtime have tensors of that kind."""
    import torch

    kinds = (
        torch.float32, torch.float64, torch.float16, torch.complex64, torch.int64, torch.int32, torch.bool,
    )  # fmt: skip
    return tensor.dtype in kinds and tensor.layout == torch.strided


def _first_wrong(
    exporter: str,
    request: ExportRequest,
    calls: Sequence[_Call],
    left: list[int],
    *,
    unknown_is_wrong: bool = False,
) -> tuple[_Call, float, float] | None:
    """Export the calls as one graph, in which none feeds another; in halves where that fails.

    Args:
        request: Request of the whole module.
        left: Number of exports that may still be tried, in its one element.
        unknown_is_wrong: Whether a call that can't be exported counts as wrong.
    """
    if not calls or left[0] <= 0:
        return None
    left[0] -= 1
    module, feeds = _replay(calls)
    names = tuple(f"result{n}" for n in range(sum(len(call.results) for call in calls)))
    alone = replace(
        request,
        module=module,
        inputs=tuple(DummyInput(n, str(v.dtype), v.shape) for n, v in feeds.items()),
        axes=(),
        feeds=feeds,
        output_names=names,
    )
    failures: tuple[type[Exception], ...] = (StepError, *session_errors())
    try:
        model, _ = export_graph(exporter, alone)
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        taken = {each.name for each in session.get_inputs()}
        found = session.run(names, {name: each for name, each in feeds.items() if name in taken})
    except failures:
        if len(calls) == 1:
            return (calls[0], 0.0, 0.0) if unknown_is_wrong else None
        half = len(calls) // 2
        return _first_wrong(exporter, request, calls[:half], left) or _first_wrong(
            exporter, request, calls[half:], left
        )
    results = iter(found)
    for call in calls:
        pairs = [(each.numpy(), next(results)) for each in call.results]
        breach = _call_breach(pairs)
        if breach is not None:
            return call, *breach
    return None


def _call_breach(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[float, float] | None:
    """PyTorch's and ONNX Runtime's value where a call's results differ; indices next to values are not compared."""
    floats = [pair for pair in pairs if pair[0].dtype.kind == "f"]
    for expected, actual in floats or pairs:
        found = operator_breach(expected, actual)
        if found is not None:
            return found
    return None


def _replay(calls: Sequence[_Call]) -> tuple[torch.nn.Module, Feeds]:
    """A module that makes all calls, and their inputs; weights are its own."""
    import torch
    from torch.utils._pytree import tree_unflatten

    feeds: Feeds = {}
    plans: list[tuple[_Call, dict[int, str]]] = []
    weights: dict[str, torch.Tensor] = {}
    for n, call in enumerate(calls):
        places = {}
        for place, leaf in enumerate(call.leaves):
            if isinstance(leaf, torch.Tensor):
                places[place] = f"x{n}_{place}"
                if isinstance(leaf, torch.nn.Parameter):
                    weights[places[place]] = leaf.detach()
                else:
                    feeds[places[place]] = _real_results(leaf)[0].numpy()
        plans.append((call, places))

    class Replay(torch.nn.Module):  # type: ignore[misc] # torch is Any here
        def __init__(self) -> None:
            super().__init__()
            for name, weight in weights.items():
                self.register_buffer(name, weight)

        def forward(self, **inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
            results: list[torch.Tensor] = []
            for call, places in plans:
                leaves = list(call.leaves)
                for place, name in places.items():
                    given = inputs[name].clone() if name in inputs else getattr(self, name)
                    leaves[place] = (
                        torch.view_as_complex(given) if leaves[place].is_complex() else given
                    )
                args, options = tree_unflatten(leaves, call.structure)
                made = call.function(*args, **options)
                if made is None:  # an assignment to some of a tensor's elements
                    made = args[0]
                results += _real_results(made)
            return tuple(results)

    return Replay().eval(), feeds


def wrong_operator_error(
    wrong: WrongOperator, exporter: str, reason: str, where: str, *, alone: bool
) -> WrongOperatorError:
    """Return the error of a graph that differs because of an operator.

    Args:
        exporter: Exporter that made the graph.
        reason: How the graph differs.
        where: `recipe:step`, for an operator that no line of the user's calls.
        alone: Whether the recipe asks for that exporter, so that the other one was not tried.
    """
    place = f" at {wrong.line}" if wrong.line else ""
    form = "translations: FILE.py:CALLABLE" if exporter == "dynamo" else ""
    form = f"`export: {{{form}}}`" if form else "torch.autograd.Function.symbolic"
    fix = f"write the operator in terms of others, or give it a translation ({form})"
    if wrong.other and alone:
        fix = f"write `export: {{exporter: {wrong.other}}}`, which translates it right; or {fix}"
    return WrongOperatorError(
        f"{reason}; the {exporter} exporter translates '{wrong.name}'{place} wrongly: on the same inputs "
        f"it gives {wrong.actual:.6g}, PyTorch {wrong.expected:.6g}",
        where=wrong.line or where,
        fix=fix,
    )
