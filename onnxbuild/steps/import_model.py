"""A model that was made elsewhere, as an artifact: to be measured beside the recipe's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.foreign_inputs import nearest_input
from onnxbuild.onnxkit.model_files import file_bytes, load_model, save_model
from onnxbuild.onnxkit.summary import dimensions, dtype_name

_NARROWED = {("float32", "float16")}
"""(declared, found) that is fed all the same: a variant may narrow its inputs."""


@dataclass(frozen=True, slots=True)
class ImportParams:
    """All that steers it.

    Attributes:
        model: Its files: the model, then its external data.
        name: As the user named it, for messages.
        inputs: What the recipe declares, and will feed.
    """

    model: Entrypoint
    name: str
    inputs: tuple[DummyInput, ...]


def run(context: StepContext) -> Outcome:
    """Write the model as the store spells models.

    Raises:
        StepError: It is no ONNX model, lacks its external data, or takes other inputs.
    """
    params: ImportParams = context.params
    files = dict(context.files(params.model))
    path = next(place for place in files.values() if place.suffix == ".onnx")
    _check(params, path)
    target = context.output("model")
    save_model(load_model(path, weights="mapped"), target)
    return Outcome(metrics={"size_bytes": file_bytes(target)})


def _check(params: ImportParams, path: Path) -> None:
    graph = load_model(path, weights="left").graph
    weights = {each.name for each in graph.initializer}
    found = {each.name: each for each in graph.input if each.name not in weights}
    declared = {each.name: each for each in params.inputs}
    if found.keys() != declared.keys():
        raise StepError(
            f"{params.name} takes {', '.join(found) or 'no inputs'}; the recipe feeds "
            f"{', '.join(declared)}",
            where=params.name,
            fix=nearest_input(tuple(found), tuple(declared))
            or "compare models of the same inputs, or name the recipe that fits this one",
        )
    for name, value in found.items():
        want, dtype = declared[name], dtype_name(value.type.tensor_type.elem_type)
        if dtype != want.dtype and (want.dtype, dtype) not in _NARROWED:
            raise StepError(
                f"input '{name}' of {params.name} is {dtype}; the recipe feeds {want.dtype}",
                where=params.name,
                fix="compare models of the same inputs",
            )
        shape = dimensions(value)
        fits = shape is None or (
            len(shape) == len(want.shape)
            and all(
                not isinstance(own, int) or not isinstance(other, int) or own == other
                for own, other in zip(shape, want.shape, strict=True)
            )
        )
        if not fits:
            raise StepError(
                f"input '{name}' of {params.name} has the shape {shape}; the recipe feeds "
                f"{list(want.shape)}",
                where=params.name,
                fix="compare models of the same inputs",
            )


KIND = StepKind(
    name="import",
    version=2,
    params=ImportParams,
    inputs=(),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "numpy"),
    run=run,
    entrypoints=lambda params: (params.model,),
)
