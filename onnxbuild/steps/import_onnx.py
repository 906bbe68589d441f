"""Import a model that is ONNX already, or that a converter wrote: canonical form, the recipe's names, sizes and outputs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from onnxbuild.core.digest import canonical_json
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import FILE_DATA, Axis, DummyInput, Entrypoint
from onnxbuild.core.step import REPORT_FILE, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.data.user_code import an, call_entrypoint, frontend_fix
from onnxbuild.onnxkit.frameworks import onnx
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.model_files import load_model, outside_tensors
from onnxbuild.onnxkit.model.unsound import unsound
from onnxbuild.onnxkit.ready_onnx.accept import accept
from onnxbuild.onnxkit.ready_onnx.written_out import (
    settle_locales,
    write_out_default_axes,
    write_out_sparse_weights,
)

_LATER_OPSET = (
    "convert the model again with opset {opset} or later; if an optimizer of ONNX Runtime wrote it, name the "
    "file that was optimized"
)
"""Fix for a model that needs a later opset than it declares: the recipe's `opset` can't raise it."""


@dataclass(frozen=True, slots=True)
class ImportConvertedParams:
    """Parameters of an import of what a framework's converter wrote.

    Attributes:
        shown: How messages call the model.
        inputs: What the recipe declares.
        outputs: Names in order; empty takes the model's.
        axes: The recipe's.
        rename: The model's names of inputs and outputs -> the recipe's.
    """

    shown: str
    inputs: tuple[DummyInput, ...]
    outputs: tuple[str, ...]
    axes: tuple[Axis, ...]
    rename: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ImportOnnxParams:
    """Parameters of an import.

    Attributes:
        model: The callable, or the model's files, the model itself first.
        inputs: What the recipe declares.
        outputs: Names in order; empty takes the model's.
        axes: The recipe's.
        rename: The model's names of inputs and outputs -> the recipe's.
    """

    model: Entrypoint
    inputs: tuple[DummyInput, ...]
    outputs: tuple[str, ...]
    axes: tuple[Axis, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)


def run(context: StepContext) -> Outcome:
    """Write the model in canonical form, as the recipe declares it; `config` names all outputs that it had.

    Raises:
        StepError: The callable gives no ONNX model, or it is not as declared, or not valid, or it fails at
            a size that the recipe allows.
    """
    params: ImportOnnxParams = context.params
    phase("loading the model")
    model, shown = _load(context, params.model)
    if why := unsound(model):
        raise StepError(f"{shown}: {why}", where=context.where)
    write_out_sparse_weights(model)
    write_out_default_axes(model)
    settle_locales(model)
    outputs = [params.rename.get(each.name, each.name) for each in model.graph.output]
    outcome = accept(
        context,
        model,
        shown,
        inputs=params.inputs,
        outputs=params.outputs,
        axes=params.axes,
        rename=params.rename,
        later_opset=_LATER_OPSET,
    )
    config = canonical_json({"outputs": outputs})
    (context.output("config") / REPORT_FILE).write_bytes(config)
    return outcome


def run_converted(context: StepContext) -> Outcome:
    """Write what a converter wrote as the recipe declares it.

    Raises:
        StepError: It is not as declared, or not valid, or it fails at a size that the recipe allows.
    """
    params: ImportConvertedParams = context.params
    return accept(
        context,
        load_model(context.input("model"), weights="mapped"),
        params.shown,
        inputs=params.inputs,
        outputs=params.outputs,
        axes=params.axes,
        rename=params.rename,
    )


def _load(context: StepContext, entrypoint: Entrypoint) -> tuple[onnx.ModelProto, str]:
    """The model, and how messages call it."""
    if entrypoint.target == FILE_DATA:
        name, path = context.files(entrypoint)[0]
        return load_model(path, weights="mapped"), name
    return _called(context, entrypoint), entrypoint.target


def _called(context: StepContext, entrypoint: Entrypoint) -> onnx.ModelProto:
    make = context.load(entrypoint)
    made = call_entrypoint(make, entrypoint, context.where)
    if isinstance(made, (str, os.PathLike)):
        return load_model(Path(made), weights="mapped")
    if not isinstance(made, onnx.ModelProto):
        raise StepError(
            f"{entrypoint.target} returned {an(made)}; expected the path of an .onnx file, or an "
            "onnx.ModelProto",
            where=context.where,
            fix=frontend_fix(
                made, "return one of these, or write `frontend: pytorch` for a torch.nn.Module"
            ),
        )
    if any(True for _ in outside_tensors(made)):
        raise StepError(
            f"{entrypoint.target} returned a model without the weights of its external data",
            where=context.where,
            fix="return the path of its file instead",
        )
    return made


KIND = StepKind(
    name="import-onnx",
    version=9,
    params=ImportOnnxParams,
    inputs=(),
    outputs={"model": "onnx-model", "config": "report"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
    user_code=True,
    entrypoints=lambda params: (params.model,),
)

CONVERTED = StepKind(
    name="import-converted",
    version=7,
    params=ImportConvertedParams,
    inputs=("model",),
    outputs={"model": "onnx-model", "config": "report"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run_converted,
)
