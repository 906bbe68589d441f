"""Values that dummies never have, and sizes that an exporter restricts: what a graph is tried on besides its points."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.axis import Point
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.accuracy.comparison import mismatch
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.reference_feeds import extreme_rows, scaled_feeds
from onnxbuild.onnxkit.export.agreement import graph_breach
from onnxbuild.onnxkit.export.errors import SizeChoiceError
from onnxbuild.onnxkit.export.export_check import Probes, compare_at
from onnxbuild.onnxkit.export.torch_module import run_module
from onnxbuild.onnxkit.frameworks import np, torch
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.sessions.open import first_line, open_session, session_errors
from onnxbuild.onnxkit.sessions.run import fit_feeds

if TYPE_CHECKING:
    from onnxbuild.onnxkit.export.export_check import Probes


_MOST_DOUBLE_BYTES = 1 << 30
"""Weights of larger modules are not copied in twice the precision."""


@dataclass(frozen=True, slots=True)
class UnusualProbe:
    """Feeds and PyTorch's outputs, with what is special about the feeds.

    Attributes:
        words: `on inputs times 100`.
        real: Whether they are the user's own.
    """

    words: str
    feeds: Feeds
    outputs: tuple[np.ndarray, ...]
    real: bool = False


def value_probes(
    probes: Probes, samples: Sequence[tuple[str, Feeds]], where: str
) -> tuple[UnusualProbe, ...]:
    """Run the module on unusual values at the exported sizes, then on the user's samples.

    Values that the module refuses are left out, as only the user knows whether it meets them; samples are not.

    Args:
        probes: The module, and its sizes.
        samples: (name, feeds) of each.
        where: `recipe:step`, for messages.

    Raises:
        StepError: Forward fails on a sample.
    """

    def outputs(feeds: Feeds) -> tuple[np.ndarray, ...]:
        found = run_module(probes.module, feeds, where, probes.names, inputs=probes.inputs)
        return tuple(found.outputs.values())

    phase("running the model on unusual values")
    made = []
    for words, feeds in _unusual(probes.inputs, probes.runs[0].point.sizes):
        try:
            made.append(UnusualProbe(words, feeds, outputs(feeds)))
        except StepError:
            continue
    made += [UnusualProbe(f"on {n}", feeds, outputs(feeds), real=True) for n, feeds in samples]
    return tuple(made)


def _unusual(
    inputs: Sequence[DummyInput], sizes: Mapping[str, int]
) -> Iterator[tuple[str, Feeds]]:
    """Yield what is special, and feeds."""
    for feeds in extreme_rows(inputs, sizes, "values"):
        yield "on rows of the least and of the greatest value", feeds
    for factor, feeds in scaled_feeds(inputs, sizes, "values"):
        yield f"on inputs times {factor:g}" if factor else "on inputs of zeros", feeds


def check_values(
    folder: Path,
    probes: Probes,
    values: Sequence[UnusualProbe],
    where: str,
    explain: Callable[[Feeds, str], StepError | None],
) -> None:
    """Compare the graph with PyTorch on unusual values, where PyTorch's are finite.

    What rounding alone may make of such values is no fault: a difference counts where one operator makes it, or
    where PyTorch gives the same in twice the precision.

    Args:
        where: `recipe:step`, for messages.
        explain: Return the error of the operator that makes a difference on some feeds; None where each is right.

    Raises:
        StepError: It differs.
    """
    session = open_session(folder, where=where)
    for probe in values:
        try:
            found = session.run(list(probes.names), fit_feeds(session, probe.feeds))
        except session_errors() as error:
            reason, exact = f"ONNX Runtime fails: {first_line(error)}", False
        else:
            reason, exact = _difference(probes.names, probe.outputs, found)
        if not reason:
            continue
        what = f"{probe.words} {reason}"
        explained = explain(probe.feeds, what)
        if explained is not None:
            raise explained
        if probe.real or (not exact and _is_steady(probes, probe)):
            fix = "forward must not choose by values in Python (`if`, int(), .item())"
            if not probe.real:
                fix += ", or bound the inputs' values in `dummy_inputs` (`low`, `high`, `mask`, `fill`)"
            raise StepError(what, where=where, fix=fix)


def _difference(
    names: Sequence[str], expected: Sequence[np.ndarray], actual: Sequence[np.ndarray]
) -> tuple[str, bool]:
    """Return how the outputs differ where PyTorch's are finite, and whether that output is of whole numbers."""
    for name, b, a in zip(names, expected, actual, strict=True):
        if b.shape == a.shape and b.dtype == a.dtype and b.dtype.kind == "f":
            finite = np.isfinite(b)
            b, a = np.where(finite, b, 0), np.where(finite, a, 0)  # noqa: PLW2901
        exact = b.dtype.kind != "f"
        if reason := mismatch(b, a):
            return f"output '{name}' has {reason}", exact
        if worst := graph_breach(b, a):
            return (
                f"output '{name}' differs from PyTorch in {worst.count} of {b.size} elements; worst "
                f"{list(worst.index)}: {worst.actual:.6g}, PyTorch {worst.expected:.6g}"
            ), exact
    return "", False


def _is_steady(probes: Probes, probe: UnusualProbe) -> bool:
    """Return whether PyTorch gives the same in float64, so that rounding is not what differs."""
    module: torch.nn.Module = probes.module
    if sum(each.nbytes for each in module.state_dict().values()) > _MOST_DOUBLE_BYTES:
        return False
    feeds = {
        name: array.astype("float64") if array.dtype.kind == "f" else array
        for name, array in probe.feeds.items()
    }
    try:
        double = copy.deepcopy(module).double()
        found = run_module(double, feeds, outputs=probes.names).outputs.values()
    except (StepError, RuntimeError, TypeError):  # forward names a dtype, or can't be copied
        return False
    single = [each.astype(b.dtype) for each, b in zip(found, probe.outputs, strict=True)]
    return not _difference(probes.names, single, probe.outputs)[0]


def check_beyond(folder: Path, probes: Probes, restricted: Mapping[str, int], where: str) -> None:
    """Compare the graph with PyTorch where restricted axes are just beyond their range, and all others at their maximum.

    Args:
        probes: PyTorch's outputs; only the module and what it takes are used.
        restricted: From `torch_wrapping.restricted_axes`; nothing is done if it is empty.
        where: `recipe:step`, for messages.

    Raises:
        SizeChoiceError: They differ.
        StepError: Forward fails there.
    """
    if not restricted:
        return
    sizes = {
        axis.name: axis.nearest(restricted[axis.name] + 1) if axis.name in restricted else axis.max
        for axis in probes.axes
    }
    said = compare_at(folder, probes, Point("beyond", sizes), where)
    if said:
        narrower = ", ".join(f"{name}: {{max: {most}}}" for name, most in restricted.items())
        raise SizeChoiceError(
            f"forward chooses by sizes, and the graph has one choice: {said}",
            where=where,
            fix="choose by `torch.where` or `torch.cond` in place of Python's `if`, or narrow "
            f"`dynamic_axes: {{{narrower}}}`",
        )
