"""Convert a model to ONNX by its framework, in an environment of the framework's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnxbuild.core.environment import Environment
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import MODEL_FILE, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.converters import jax, requests, tensorflow, tensorflow_lite
from onnxbuild.onnxkit.converters.child import Request
from onnxbuild.onnxkit.converters.run_there import run_there
from onnxbuild.onnxkit.converters.settle import settle
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.model_files import file_bytes, load_model, save_model


@dataclass(frozen=True, slots=True)
class ConvertModelParams:
    """Parameters of a conversion.

    Attributes:
        model: The model's files, or the callable.
        environment: Where the framework is installed.
        opset: Of ONNX's default domain.
        inputs: What the recipe declares, where the framework needs it; else none.
        outputs: The same.
        axes: The same.
    """

    model: Entrypoint
    environment: Environment
    opset: int
    inputs: tuple[DummyInput, ...] = ()
    outputs: tuple[str, ...] = ()
    axes: tuple[Axis, ...] = field(default=())


def _run(context: StepContext, convert: Callable[[Request], Any], asks: requests.Asks) -> Outcome:
    """Have the framework's environment write ONNX, and bring it into canonical form."""
    params: ConvertModelParams = context.params
    made = context.scratch / MODEL_FILE
    request = {**asks(context, params), "opset": params.opset, "model": str(made)}
    phase("converting in the framework's own environment")
    versions = run_there(context, params.environment, convert, request)
    model = load_model(Path(made), weights="mapped")
    phase("bringing it into canonical form")
    settle(model)
    canonicalize(model)
    folder = context.output("model")
    save_model(model, folder)
    return Outcome({"size_bytes": file_bytes(folder), **versions})


def convert_saved_model(context: StepContext) -> Outcome:
    """Write a signature of a SavedModel as ONNX.

    Raises:
        StepError: TensorFlow can't load it, or tf2onnx can't convert it.
    """
    return _run(context, tensorflow.convert_saved_model, requests.saved_model)


def convert_tflite(context: StepContext) -> Outcome:
    """Write a file of TensorFlow Lite as ONNX.

    Raises:
        StepError: TensorFlow can't load it, or tf2onnx can't convert it.
    """
    return _run(context, tensorflow_lite.convert_tflite, requests.tflite)


def convert_jax(context: StepContext) -> Outcome:
    """Write a function of JAX as ONNX.

    Raises:
        StepError: The callable or its function is not as expected, or jax2onnx can't convert it.
    """
    return _run(context, jax.convert_jax, requests.jax)


def _kind(name: str, run: Callable[[StepContext], Outcome], *packages: str) -> StepKind:
    return StepKind(
        name=name,
        version=1,
        params=ConvertModelParams,
        inputs=(),
        outputs={"model": "onnx-model"},
        toolchain=("onnx", "numpy", *packages),
        run=run,
        user_code=True,
        entrypoints=lambda params: (params.model,),
    )


SAVED_MODEL = _kind("convert-saved-model", convert_saved_model, "tensorflow")
JAX = _kind("convert-jax", convert_jax, "jax")
TFLITE = _kind("convert-tflite", convert_tflite, "tensorflow")
