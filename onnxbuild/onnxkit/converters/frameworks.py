"""Frameworks that run in an environment of their own: what is asked of them, what runs there, where they are installed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from onnxbuild.core.environment import BUILT_IN, Environment
from onnxbuild.core.params import option
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.converters import jax, tensorflow
from onnxbuild.onnxkit.converters.child import Request

SIGNATURE, TAGS, INPUTS, OUTPUTS, TENSORS = "signature", "tags", "inputs", "outputs", "tensors"
"""Facts of a model's file, in `Entrypoint.args`."""

TF2ONNX_OPSET = 18
"""The last that tf2onnx 1.17 writes, and the default of its models."""

ENVIRONMENT_HELP = (
    "where the model's framework is installed (saved_model, tflite, jax); left out: a virtual environment of 1 to "
    "2 GB that is made once, from a list that comes with onnxbuild"
)

_TENSORFLOW = ("tensorflow", TF2ONNX_OPSET, "tensorflow.txt", "tf2onnx")


@dataclass(frozen=True, slots=True)
class FrameworkEnvironment:
    """Environment that a framework is installed in; one of the two."""

    requirements: str = option(
        "",
        help="a list of pinned requirements (NAME==VERSION), relative to this file: a virtual environment is "
        "made from it, once",
    )
    python: str = option(
        "", help="the `python` of an environment that is there, relative to this file"
    )


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework, and the functions that run in its environment.

    Attributes:
        name: Of its frontend.
        package: Its distribution, and its module.
        last_opset: The last one that its converter writes; ONNX's version converter writes later ones.
        requirements: The list of this folder that its environment is made from, if a recipe names no other.
        converter: Distribution of its converter.
        request: (The step's context, its parameters) -> which model is meant, as JSON.
        convert: Writes ONNX.
        compute: Runs a model on feeds.
        open: Returns what binds feeds to a call, for the benchmark.
    """

    name: str
    package: str
    last_opset: int
    requirements: str
    converter: str
    request: Callable[[StepContext, Any], dict[str, Any]]
    convert: Callable[[Request], Any]
    compute: Callable[[Request], None]
    open: Callable[[Request], Any]

    @property
    def kind(self) -> str:
        """Its name in those of step kinds."""
        return self.name.replace("_", "-")

    @property
    def environment(self) -> Environment:
        """Environment of the framework, if a recipe names no other."""
        needs = (self.package, self.converter)
        return Environment(
            requirements=f"{BUILT_IN}/onnxkit/converters/{self.requirements}", needs=needs
        )


def _saved_model(context: StepContext, params: Any) -> dict[str, Any]:
    """Return which signature of which SavedModel is meant."""
    path = context.files(params.model)[0][1]
    facts = params.model.args
    keys = (SIGNATURE, TAGS, INPUTS, OUTPUTS)
    return {"folder": str(path.parent), **{key: facts[key] for key in keys}}


def _tflite(context: StepContext, params: Any) -> dict[str, Any]:
    """Return which file is meant, and what its tensors are called."""
    facts = params.model.args
    file = context.files(params.model)[0][1]
    return {"file": str(file), **{key: facts[key] for key in (TENSORS, INPUTS, OUTPUTS)}}


def _jax(context: StepContext, params: Any) -> dict[str, Any]:
    """Return where a callable is, what it is called with, and what its function takes."""
    file, folders = context.code(params.model)
    target, _, attribute = params.model.target.rpartition(":")
    return {
        "file": file,
        "folders": folders,
        "attribute": attribute,
        "shown": f"{target}:{attribute}",
        "args": dict(params.model.args),
        "env": dict(params.model.env),
        "inputs": [
            {"name": each.name, "dtype": each.dtype, "shape": list(each.shape)}
            for each in params.inputs
        ],
        "outputs": list(params.outputs),
        "examples": {axis.name: axis.example for axis in params.axes},
    }


SAVED_MODEL = Framework(
    "saved_model",
    *_TENSORFLOW,
    _saved_model,
    tensorflow.convert_saved_model,
    tensorflow.compute_saved_model,
    tensorflow.open_saved_model,
)


TFLITE = Framework(
    "tflite",
    *_TENSORFLOW,
    _tflite,
    tensorflow.convert_tflite,
    tensorflow.compute_tflite,
    tensorflow.open_tflite,
)


JAX = Framework(
    "jax", "jax", 23, "jax.txt", "jax2onnx", _jax, jax.convert_jax, jax.compute_jax, jax.open_jax
)


FRAMEWORKS: Mapping[str, Framework] = {each.name: each for each in (SAVED_MODEL, TFLITE, JAX)}
