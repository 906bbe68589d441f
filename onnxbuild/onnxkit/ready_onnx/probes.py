"""Run a model that is ONNX already at several sizes: which axes it really takes, what its outputs are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.axis import Dimension, Point, one_spelling, sums_of, symbols_of, terms
from onnxbuild.core.draft import Draft
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.data.axis_rule import FoundRule
from onnxbuild.onnxkit.export.probe_sizes import axis_by_axis, find_fixed, find_rule, probe_points
from onnxbuild.onnxkit.model.model_files import load_model, save_model
from onnxbuild.onnxkit.model.shapes import Observed, name_output_axes
from onnxbuild.onnxkit.ready_onnx.adapt import adapt
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session
from onnxbuild.onnxkit.sessions.settings import SessionSettings

if TYPE_CHECKING:
    import onnx
    import onnxruntime


AS_WRITTEN = SessionSettings(graph_optimization="disable").judged()
"""The graph as it was made, node by node."""

_ROUNDS_MAX = 4

_AXES, _INPUTS = "dynamic_axes", "dummy_inputs"


_OTHER_SIZES = (1, 128, 512)
"""Sizes tried where a model fails at its example: one row, and inputs that are long enough for windows and padding."""


@dataclass(frozen=True, slots=True)
class SizeFault:
    """Sizes that a model should take, and does not.

    Attributes:
        what: One sentence.
        fix: What to type.
        rule: The rule of the axes that explains it; None where none does.
    """

    what: str
    fix: str
    rule: FoundRule | None


def load_named(
    folder: Path, inputs: Sequence[DummyInput], axes: Sequence[Axis], where: str
) -> onnx.ModelProto:
    """Load a model whose outputs' axes are named by what it gives at several sizes; see `probe_points`.

    Args:
        inputs: As the recipe declares them.
        where: `recipe:step`.

    Raises:
        StepError: It fails somewhere; names the axis and the sizes that it takes where they are known.
    """
    observed, fault = try_sizes(folder, inputs, axes, where)
    if fault is not None:
        raise StepError(fault.what, where=where, fix=fault.fix)
    model = load_model(folder, weights="mapped")
    symbols = [axis.name for axis in axes]
    symbols += sums_of([each.shape for each in inputs])

    def largest(name: str) -> Observed | None:
        size = next(axis.max for axis in axes if axis.name == name)
        point = Point(f"max-{name}", {**observed[0][0], name: size})
        session = open_session(folder, settings=AS_WRITTEN, where=where)
        try:
            return point.sizes, _shapes_at(session, inputs, point, where)
        except StepError:
            return None

    name_output_axes(model, observed, symbols, largest)
    return model


def try_sizes(
    folder: Path, inputs: Sequence[DummyInput], axes: Sequence[Axis], where: str
) -> tuple[list[Observed], SizeFault | None]:
    """Run a model at the sizes that an export is tried at.

    Args:
        inputs: As the recipe declares them.
        where: `recipe:step`.

    Returns: What was seen up to the first fault, and that; None without any.

    Raises:
        StepError: ONNX Runtime can't open the model.
    """
    session = open_session(folder, settings=AS_WRITTEN, where=where)
    shapes = [each.shape for each in inputs]
    sums = sums_of(shapes)

    def run(point: Point) -> list[tuple[int, ...]]:
        return _shapes_at(session, inputs, point, where)

    observed: list[Observed] = []
    for point in probe_points(axes, sums):
        try:
            observed.append((point.sizes, run(point)))
        except StepError as error:
            what = f"the model fails at {_shown(point)}: {error.what}"
            takes = partial(_runs, run)
            rule = find_rule(axes, shapes, point, takes) or find_fixed(axes, shapes, takes)
            if rule is not None:
                return observed, SizeFault(f"{rule.what}: {what}", rule.fix, rule)
            if not observed and (elsewhere := _one_other_size(axes, point, takes)):
                return observed, SizeFault(what, elsewhere, None)
            guilty = [
                name
                for name, one in axis_by_axis(axes, point, sums)
                if observed and not takes(one.sizes)
            ]
            return observed, SizeFault(what, _fix(guilty), None)
    return observed, None


def _shapes_at(
    session: onnxruntime.InferenceSession, inputs: Sequence[DummyInput], point: Point, where: str
) -> list[tuple[int, ...]]:
    from onnxbuild.onnxkit.export.export_check import probe_feeds

    found = run_session(session, probe_feeds(inputs, point), where)
    return [array.shape for array in found.values()]


def _runs(run: Callable[[Point], object], sizes: Mapping[str, int]) -> bool:
    """Return whether a model runs at some sizes."""
    try:
        run(Point("", sizes))
    except StepError:
        return False
    return True


def _one_other_size(
    axes: Sequence[Axis], point: Point, takes: Callable[[Mapping[str, int]], bool]
) -> str:
    """Return the fix for a model that runs nowhere in the declared ranges, but with another size of one axis."""
    for size in _OTHER_SIZES:
        for axis in axes:
            if point.sizes[axis.name] != size and takes({**point.sizes, axis.name: size}):
                return (
                    f"it runs at {axis.name}={size}: write the sizes that it takes, such as "
                    f"`dynamic_axes: {{{axis.name}: {{min: {size}, max: {size}, example: {size}}}}}`"
                )
    return ""


def _fix(guilty: Sequence[str]) -> str:
    if guilty:
        name = guilty[0]
        return (
            f"write the sizes that it takes: `dynamic_axes: {{{name}: {{min: ..., max: ..., "
            f"example: ...}}}}`, or its one size in place of `{name}` in `dummy_inputs`"
        )
    return (
        "write values and sizes that it takes: `low`, `high` or `fill` in `dummy_inputs`, the ranges in "
        "`dynamic_axes`"
    )


def _shown(point: Point) -> str:
    return ", ".join(f"{name}={size}" for name, size in point.sizes.items()) or "its fixed sizes"


def draft_of_sizes(
    path: Path, rename: Mapping[str, str], said: Mapping[str, Any], folder: Path
) -> Draft | None:
    """Run a file; return what that changes in the recipe that it declares, None for nothing.

    Args:
        rename: Its names of inputs and outputs -> the recipe's.
        said: `dummy_inputs`, `outputs` and `dynamic_axes` as the file says them.
        folder: An empty one, to write to.
    """
    axes = {name: Axis(name, **sizes) for name, sizes in said.get(_AXES, {}).items()}
    if not axes:
        return None
    shapes = {name: list(each["shape"]) for name, each in said[_INPUTS].items()}
    comments: dict[str, str] = {}
    for number in range(_ROUNDS_MAX):
        inputs = [
            DummyInput(name, **{**each, "shape": tuple(shapes[name])})
            for name, each in said[_INPUTS].items()
        ]
        at = folder / str(number)
        try:
            model = load_model(path, weights="mapped")
            adapt(model, inputs, tuple(said["outputs"]), rename, path.name)
            save_model(model, at)
            del model
            _, fault = try_sizes(at, inputs, tuple(axes.values()), path.name)
        except StepError:  # the build reports it
            return None
        if fault is None:
            break
        if fault.rule is None:
            return Draft(
                _changed(axes, shapes, said),
                comments,
                {_AXES: f"sizes that the model takes: {fault.what}"},
            )
        for axis in fault.rule.axes:
            axes[axis.name] = axis
            comments[f"{_AXES}.{axis.name}"] = f"tried: {fault.rule.what}"
        for axis in fault.rule.fixed:
            del axes[axis.name]
            for name, shape in shapes.items():
                if any(axis.name in symbols_of(each) for each in shape):
                    comments[f"{_INPUTS}.{name}"] = f"tried: {fault.rule.what}"
                shapes[name] = [_at_example(each, axis) for each in shape]
    return Draft(_changed(axes, shapes, said), comments) if comments else None


def _at_example(dimension: Dimension, axis: Axis) -> Dimension:
    """Return a dimension with an axis replaced by its example, in sums, too."""
    parts = [axis.example if part == axis.name else part for part in terms(dimension)]
    numbers = [part for part in parts if isinstance(part, int)]
    return sum(numbers) if len(numbers) == len(parts) else one_spelling("+".join(map(str, parts)))


def _changed(
    axes: Mapping[str, Axis], shapes: Mapping[str, list[Any]], said: Mapping[str, Any]
) -> dict[str, Any]:
    """Keys of the recipe that differ from what the file says."""
    sizes = {name: _sizes(axis) for name, axis in axes.items()}
    inputs = {
        name: {"shape": shape}
        for name, shape in shapes.items()
        if shape != list(said[_INPUTS][name]["shape"])
    }
    changed = {name: each for name, each in sizes.items() if each != said[_AXES][name]}
    return {**({_INPUTS: inputs} if inputs else {}), **({_AXES: changed} if changed else {})}


def _sizes(axis: Axis) -> dict[str, int]:
    step = {"multiple_of": axis.multiple_of} if axis.multiple_of > 1 else {}
    return {"min": axis.min, "max": axis.max, "example": axis.example, **step}
