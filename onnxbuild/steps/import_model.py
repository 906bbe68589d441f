"""Import a model that was made elsewhere as an artifact, to compare the recipe's models with."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.core.step import ORT_FILE, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.ahead_of_time.ort_format import Shape, check_machine, ort_inputs
from onnxbuild.onnxkit.model.inspect import dimensions, dtype_name
from onnxbuild.onnxkit.model.model_files import file_bytes, load_model, save_model
from onnxbuild.onnxkit.programs.input_mismatch import nearest_input

ORT_SUFFIX = ".ort"
_NARROWED = {("float32", "float16")}
"""(declared, found) that is fed all the same: a variant may narrow its inputs."""


@dataclass(frozen=True, slots=True)
class ImportParams:
    """Parameters of an import.

    Attributes:
        model: Its files: the model, then its external data, or of ORT format its bundle's manifest.
        name: As the user named it, for messages.
        inputs: What the recipe declares, and will feed.
    """

    model: Entrypoint
    name: str
    inputs: tuple[DummyInput, ...]


def run(context: StepContext) -> Outcome:
    """Write the model as the store spells models; one in ORT format as it is.

    Raises:
        StepError: It is no ONNX model, lacks its external data, is for another machine or ONNX
            Runtime, or takes other inputs.
    """
    params: ImportParams = context.params
    path, *attached = (place for _, place in context.files(params.model))
    target = context.output("model")
    if path.suffix == ORT_SUFFIX:
        for manifest in attached:
            check_machine(manifest, params.name)
        _check(params, ort_inputs(path, params.name))
        shutil.copyfile(path, target / ORT_FILE)
    else:
        _check(params, _onnx_inputs(path))
        save_model(load_model(path, weights="mapped"), target)
    return Outcome(metrics={"size_bytes": file_bytes(target)})


def _onnx_inputs(path: Path) -> dict[str, tuple[str, Shape | None]]:
    graph = load_model(path, weights="left").graph
    weights = {each.name for each in graph.initializer}
    return {
        each.name: (dtype_name(each.type.tensor_type.elem_type), dimensions(each))
        for each in graph.input
        if each.name not in weights
    }


def _check(params: ImportParams, found: Mapping[str, tuple[str, Shape | None]]) -> None:
    declared = {each.name: each for each in params.inputs}
    if found.keys() != declared.keys():
        raise StepError(
            f"{params.name} takes {', '.join(found) or 'no inputs'}; the recipe feeds "
            f"{', '.join(declared)}",
            where=params.name,
            fix=nearest_input(tuple(found), tuple(declared))
            or "compare models of the same inputs, or name the recipe that fits this one",
        )
    for name, (dtype, shape) in found.items():
        want = declared[name]
        if dtype != want.dtype and (want.dtype, dtype) not in _NARROWED:
            raise StepError(
                f"input '{name}' of {params.name} is {dtype}; the recipe feeds {want.dtype}",
                where=params.name,
                fix="compare models of the same inputs",
            )
        fits = shape is None or (
            len(shape) == len(want.shape)
            and all(
                not isinstance(own, int) or not isinstance(other, int) or own == other
                for own, other in zip(shape, want.shape, strict=True)
            )
        )
        if not fits:
            raise StepError(
                f"input '{name}' of {params.name} has the shape {list(shape or ())}; the recipe feeds "
                f"{list(want.shape)}",
                where=params.name,
                fix="compare models of the same inputs",
            )


KIND = StepKind(
    name="import",
    version=4,
    params=ImportParams,
    inputs=(),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "numpy", "onnxruntime"),
    run=run,
    user_code=True,
    entrypoints=lambda params: (params.model,),
)
"""User code: what others made is opened behind the fence, like a recipe's own."""
