"""Draft of a first recipe from a run of its ONNX file: the sizes that its axes really take."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onnxbuild.core.axis import Dimension, one_spelling, symbols_of, terms
from onnxbuild.core.draft import Draft
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.model.model_files import load_model, save_model
from onnxbuild.onnxkit.ready_onnx.adapt import adapt
from onnxbuild.onnxkit.ready_onnx.probes import try_sizes

_ROUNDS_MAX = 4
_AXES, _INPUTS = "dynamic_axes", "dummy_inputs"


def draft_of_sizes(
    path: Path, rename: Mapping[str, str], said: Mapping[str, Any], folder: Path
) -> Draft | None:
    """Run a file; return what that changes in the recipe that it declares, None for nothing.

    Args:
        path: The file.
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
    return {
        **({_INPUTS: inputs} if inputs else {}),
        **({_AXES: changed} if changed else {}),
    }


def _sizes(axis: Axis) -> dict[str, int]:
    step = {"multiple_of": axis.multiple_of} if axis.multiple_of > 1 else {}
    return {"min": axis.min, "max": axis.max, "example": axis.example, **step}
