"""Run a model in its own framework, in the framework's environment, to judge variants by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from onnxbuild.core.environment import Environment
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.converters import jax, requests, tensorflow, tensorflow_lite
from onnxbuild.onnxkit.converters.child import Request
from onnxbuild.onnxkit.converters.run_there import computed_there
from onnxbuild.onnxkit.data.feed_checks import refuse_nan
from onnxbuild.onnxkit.data.reference_feeds import SAMPLE, ReferenceOptions, reference_feeds
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter


@dataclass(frozen=True, slots=True)
class FrameworkReferenceParams:
    """Parameters of a reference run.

    Attributes:
        model: The model's files, or the callable.
        environment: Where the framework is installed.
        inputs: What the recipe declares.
        outputs: Names in order; empty takes the model's.
        axes: As the variant takes them.
        samples: A callable of real samples; None for none.
        options: Seed, points, number of samples.
        rename: The model's names of inputs and outputs -> the recipe's.
    """

    model: Entrypoint
    environment: Environment
    inputs: tuple[DummyInput, ...]
    outputs: tuple[str, ...]
    axes: tuple[Axis, ...]
    samples: Entrypoint | None
    options: ReferenceOptions
    rename: Mapping[str, str]


def _run(context: StepContext, compute: Callable[[Request], Any], asks: requests.Asks) -> Outcome:
    """Write points.json and one .npz a point: what the framework itself computes."""
    params: FrameworkReferenceParams = context.params
    points = list(
        reference_feeds(
            context,
            params.inputs,
            params.axes,
            points=params.options.points,
            seed=params.options.seed,
            samples=params.samples,
            max_samples=params.options.max_samples,
        )
    )
    theirs = {ours: name for name, ours in params.rename.items()}
    feeds = [
        {theirs.get(name, name): array for name, array in given.items()} for _, _, given in points
    ]
    found = computed_there(context, params.environment, compute, asks(context, params), feeds)
    writer = ReferenceWriter(context.output("reference"))
    samples = 0
    for (name, sizes, given), made in zip(points, found, strict=True):
        outputs = {params.rename.get(key, key): array for key, array in made.items()}
        outputs = {key: outputs[key] for key in params.outputs or outputs}
        refuse_nan(outputs, name, context.where)
        writer.add(ReferencePoint(name, sizes, given, outputs))
        samples += name.startswith(SAMPLE)
    return Outcome({"points": writer.finish(), "samples": samples}, notes=writer.notes())


def run_saved_model(context: StepContext) -> Outcome:
    """Write what TensorFlow computes with a signature of a SavedModel.

    Raises:
        StepError: It fails at a point or gives NaN, or a sample is not as declared.
    """
    return _run(context, tensorflow.compute_saved_model, requests.saved_model)


def run_tflite(context: StepContext) -> Outcome:
    """Write what TensorFlow Lite's interpreter computes.

    Raises:
        StepError: It fails at a point or gives NaN, or a sample is not as declared.
    """
    return _run(context, tensorflow_lite.compute_tflite, requests.tflite)


def run_jax(context: StepContext) -> Outcome:
    """Write what JAX computes with a function.

    Raises:
        StepError: It fails at a point or gives NaN, or a sample is not as declared.
    """
    return _run(context, jax.compute_jax, requests.jax)


def _entrypoints(params: FrameworkReferenceParams) -> tuple[Entrypoint, ...]:
    return (params.model,) if params.samples is None else (params.model, params.samples)


def _kind(name: str, run: Callable[[StepContext], Outcome], *packages: str) -> StepKind:
    return StepKind(
        name=name,
        version=3,
        params=FrameworkReferenceParams,
        inputs=(),
        outputs={"reference": "reference"},
        toolchain=("numpy", *packages),
        run=run,
        host_bound=True,
        user_code=True,
        entrypoints=_entrypoints,
    )


SAVED_MODEL = _kind("saved-model-reference", run_saved_model, "tensorflow")
JAX = _kind("jax-reference", run_jax, "jax")
TFLITE = _kind("tflite-reference", run_tflite, "tensorflow")
