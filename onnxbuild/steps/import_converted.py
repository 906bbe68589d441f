"""Import what a framework's converter wrote: the recipe's names, sizes and outputs, tried at several sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.model.model_files import load_model
from onnxbuild.onnxkit.ready_onnx.accept import accept


@dataclass(frozen=True, slots=True)
class ImportConvertedParams:
    """Parameters of an import.

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


def run(context: StepContext) -> Outcome:
    """Write the model as the recipe declares it.

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


KIND = StepKind(
    name="import-converted",
    version=7,
    params=ImportConvertedParams,
    inputs=("model",),
    outputs={"model": "onnx-model", "config": "report"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
)
