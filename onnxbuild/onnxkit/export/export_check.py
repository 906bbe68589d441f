"""Check that an export computes what the module computes, at more than one size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.axis import Point, sums_of
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.accuracy.comparison import mismatch
from onnxbuild.onnxkit.data.feed_checks import refuse_nan
from onnxbuild.onnxkit.data.feeds import Feeds, make_feeds
from onnxbuild.onnxkit.export.agreement import graph_breach
from onnxbuild.onnxkit.export.forward_faults import explain_failure
from onnxbuild.onnxkit.export.probe_sizes import (
    axis_by_axis,
    find_rule,
    only_axis,
    probe_points,
    try_sizes,
)
from onnxbuild.onnxkit.export.randomness import first_that_differs, refuse_kept, refuse_random
from onnxbuild.onnxkit.export.torch_module import make_torch_deterministic, run_module
from onnxbuild.onnxkit.host.progress import counted
from onnxbuild.onnxkit.model.shapes import Observed
from onnxbuild.onnxkit.modules.module_facts import changed_names, state_sums
from onnxbuild.onnxkit.sessions.open import first_line, open_session, session_errors
from onnxbuild.onnxkit.sessions.run import fit_feeds

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime
    import torch

_SHOWN = 3
_FAILS = "ONNX Runtime fails"


@dataclass(frozen=True, slots=True)
class ExportProbe:
    """Feeds and PyTorch's outputs at one point."""

    point: Point
    feeds: Feeds
    outputs: tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True)
class Probes:
    """PyTorch's outputs at every probe point; the model is exported at the first."""

    module: torch.nn.Module
    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]
    names: tuple[str, ...]
    runs: tuple[ExportProbe, ...]


class DifferenceError(StepError):
    """Error of a graph that differs from PyTorch.

    Attributes:
        feeds: Inputs on which it does so for another reason than their sizes; None where sizes are to blame, or the
            graph does not run.
    """

    feeds: Feeds | None = None


def run_probes(
    module: torch.nn.Module,
    inputs: tuple[DummyInput, ...],
    axes: tuple[Axis, ...],
    outputs: Sequence[str],
    where: str,
) -> Probes:
    """Run the module at every probe point.

    Raises:
        StepError: forward fails (at some sizes only: then the axis is named), its outputs are not
            as many as declared, or hold NaN.
    """
    names = tuple(outputs)
    runs: list[ExportProbe] = []
    shapes = [each.shape for each in inputs]
    points = probe_points(axes, sums_of(shapes))
    for point in counted(points, "points", doing=lambda each: f"PyTorch at {each.shown}"):
        feeds = probe_feeds(inputs, point)
        try:
            found = run_module(module, feeds, where, names, inputs=inputs)
        except StepError as error:
            rule = find_rule(
                axes,
                shapes,
                point,
                lambda sizes: _runs(module, inputs, Point("", sizes), outputs, where),
            )
            if rule is not None:
                what = f"{rule.what}: forward fails at {_show(point)}: {error.what}"
                raise StepError(what, where=error.where, fix=rule.fix) from error
            if not runs:
                raise explain_failure(error, module, feeds, inputs) from error
            guilty = _guilty_axes(
                inputs, axes, point, lambda p: _runs(module, inputs, p, outputs, where)
            )
            raise StepError(
                f"{_name_axes(guilty, axes)} baked into the model: forward runs at "
                f"{_show(runs[0].point)} but not at {_show(point)}: {error.what}",
                where=error.where,
                fix="read sizes from the tensors in forward (x.shape[0]) instead of numbers, or "
                "narrow the axis in `dynamic_axes`",
            ) from error
        names = tuple(found.outputs)
        refuse_nan(found.outputs, _show(point), where, whose="PyTorch model")
        if not runs:
            refuse_random(module, feeds, found.outputs, where, inputs=inputs)
        runs.append(ExportProbe(point, feeds, tuple(found.outputs.values())))
    if len(runs) > 1:
        first = dict(zip(names, runs[0].outputs, strict=True))
        refuse_kept(module, runs[0].feeds, first, where, inputs=inputs)
    return Probes(module, inputs, axes, names, tuple(runs))


def at_largest(probes: Probes, axis: str, where: str) -> Observed | None:
    """Return the outputs' shapes with one axis at its maximum, the others as exported; None where forward fails."""
    sizes = {each.name: each.max for each in probes.axes if each.name == axis}
    point = Point(f"max-{axis}", {**probes.runs[0].point.sizes, **sizes})
    try:
        found = _probe(probes, point, probe_feeds(probes.inputs, point), where)
    except StepError:
        return None
    return point.sizes, [each.shape for each in found.outputs]


def refuse_first_call(
    load: Callable[[], torch.nn.Module], loaded: Mapping[str, float], probes: Probes, where: str
) -> None:
    """See that outputs do not depend on what a module was called with first, as those of an ActNorm do.

    Args:
        load: Load the module anew.
        loaded: Sums of its state before it ran; nothing is said where another load gives other weights.
        probes: Outputs of the module, which ran at the first point first.
        where: `recipe:step`, for messages.

    Raises:
        StepError: They do; names what forward sets.
    """
    make_torch_deterministic()
    module, first = load(), probes.runs[0]
    if changed_names(loaded, state_sums(module)):
        return
    others = make_feeds(probes.inputs, first.point.sizes, "first call")
    run_module(module, others, where, probes.names, inputs=probes.inputs)
    changed = changed_names(loaded, state_sums(module))
    again = run_module(module, first.feeds, where, probes.names, inputs=probes.inputs).outputs
    name = first_that_differs(dict(zip(probes.names, first.outputs, strict=True)), again)
    if name:
        shown = ", ".join(f"'{each}'" for each in changed[:_SHOWN])
        raise StepError(
            f"output '{name}' depends on what forward was called with first, when it sets {shown}",
            where=where,
            fix="call the module once on your own data before your callable returns it, or load a state that "
            "was saved after such a call",
        )


def probe_feeds(inputs: Sequence[DummyInput], point: Point) -> Feeds:
    """Feeds of their own for each point, so that a branch taken by value shows."""
    return make_feeds(inputs, point.sizes, f"probe:{point.name}")


def check_parity(folder: Path, probes: Probes, where: str, *, frozen: bool = False) -> None:
    """Compare the graph in ONNX Runtime (CPU) with PyTorch at every probe point.

    Args:
        where: `recipe:step`, for messages.
        frozen: The exporter says that it froze a choice made by value: more values are tried.

    Raises:
        DifferenceError: It fails or differs somewhere; names output, sizes, the worst element, and
            which sizes are right where one axis alone is to blame.
    """
    session = open_session(folder, where=where)
    runs = (*probes.runs, *(value_probes(probes, where) if frozen else ()))
    for probe in counted(runs, "points", doing=lambda each: f"comparing at {each.point.shown}"):
        reason = _difference(session, probe, probes.names)
        if reason:
            guilty = _guilty_axes(
                probes.inputs,
                probes.axes,
                probe.point,
                lambda p: _agrees(session, probes, p, where),
            )
            baked = f"{_name_axes(guilty, probes.axes)} baked into the graph: " if guilty else ""
            fix = "forward must not choose by sizes or values in Python (`if`, int(), .item())"
            if probe is probes.runs[0] and not frozen:  # the graph was traced on these very values
                fix = "return inner tensors of forward as outputs, too, and rewrite what makes the first that differs"
            masks = [each.name for each in probes.inputs if each.dtype == "bool"]
            if (
                masks and " NaN, " in reason
            ):  # PyTorch gives zeros for a row of which nothing is left
                fix = f"bound what '{masks[0]}' masks by `fill` or `mask` in `dummy_inputs`: softmax over a row "
                fix += "that is masked as a whole gives NaN in ONNX"
            axis = only_axis(probes.axes, guilty)
            if axis is not None:
                first = probes.runs[0].point
                sizes = try_sizes(axis, first, lambda p: _agrees(session, probes, p, where))
                reason, fix = reason + sizes.what, fix + sizes.fix
            what = f"{baked}at {_show(probe.point)} {reason}"
            error = DifferenceError(what, where=where, fix=fix)
            error.feeds = None if guilty or _FAILS in reason else probe.feeds
            raise error


def compare_at(folder: Path, probes: Probes, point: Point, where: str) -> str:
    """Return how the graph differs from PyTorch at a point, with its sizes; empty where they agree.

    Raises:
        StepError: Forward fails there.
    """
    probe = _probe(probes, point, probe_feeds(probes.inputs, point), where)
    reason = _difference(open_session(folder, where=where), probe, probes.names)
    return f"at {_show(point)} {reason}" if reason else ""


def value_probes(probes: Probes, where: str) -> tuple[ExportProbe, ...]:
    """The exported sizes with other values: the same negated, and fresh ones."""
    first = probes.runs[0]
    negated = {
        each.name: -first.feeds[each.name]
        if first.feeds[each.name].dtype.kind == "f" and each.low is None and each.mask is None
        else first.feeds[each.name]
        for each in probes.inputs
    }
    feeds = [negated]
    feeds += [make_feeds(probes.inputs, first.point.sizes, f"value:{n}") for n in range(4)]
    return tuple(_probe(probes, first.point, each, where) for each in feeds)


def _probe(probes: Probes, point: Point, feeds: Feeds, where: str) -> ExportProbe:
    found = run_module(probes.module, feeds, where, probes.names, inputs=probes.inputs)
    return ExportProbe(point, feeds, tuple(found.outputs.values()))


def _difference(
    session: onnxruntime.InferenceSession, probe: ExportProbe, names: Sequence[str]
) -> str:
    """Return the difference of the graph's outputs from PyTorch's, in one sentence; empty if they agree."""
    try:
        found = session.run(list(names), fit_feeds(session, probe.feeds))
    except session_errors() as error:
        return f"{_FAILS}: {first_line(error)}"
    for name, expected, actual in zip(names, probe.outputs, found, strict=True):
        reason = mismatch(expected, actual)
        if reason:
            return f"output '{name}' has {reason}"
        worst = graph_breach(expected, actual)
        if worst:
            return (
                f"output '{name}' differs from PyTorch in {worst.count} of {expected.size} "
                f"elements; worst {list(worst.index)}: {worst.actual:.6g}, "
                f"PyTorch {worst.expected:.6g}"
            )
    return ""


def _runs(
    module: torch.nn.Module,
    inputs: Sequence[DummyInput],
    point: Point,
    outputs: Sequence[str],
    where: str,
) -> bool:
    try:
        run_module(module, probe_feeds(inputs, point), where, outputs, inputs=inputs)
    except StepError:
        return False
    return True


def _agrees(
    session: onnxruntime.InferenceSession, probes: Probes, point: Point, where: str
) -> bool:
    try:
        probe = _probe(probes, point, probe_feeds(probes.inputs, point), where)
    except StepError:
        return False
    return not _difference(session, probe, probes.names)


def _guilty_axes(
    inputs: Sequence[DummyInput], axes: Sequence[Axis], point: Point, fine: Callable[[Point], bool]
) -> list[str]:
    sums = sums_of([each.shape for each in inputs])
    return [name for name, single in axis_by_axis(axes, point, sums) if not fine(single)]


def _name_axes(guilty: Sequence[str], axes: Sequence[Axis]) -> str:
    names = list(guilty) or [axis.name for axis in axes]
    shown = " and ".join(f"'{name}'" for name in names)
    return f"axis {shown} is" if len(names) == 1 else f"axes {shown} are"


def _show(point: Point) -> str:
    return point.shown
