"""Run what a ready ONNX model was made of, to judge variants by: the user's module or function."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.core.points import example_sizes
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.accuracy.rounding import measured_rounding, rounding_at, rounding_noise
from onnxbuild.onnxkit.data.feed_checks import refuse_nan
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.reference_feeds import (
    SAMPLE,
    ReferenceOptions,
    reference_feeds,
    write_unusual,
)
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from onnxbuild.onnxkit.export.torch_module import make_torch_deterministic
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.inspect import dtype_name
from onnxbuild.onnxkit.model.model_files import load_model
from onnxbuild.onnxkit.ready_onnx.original_model import (
    Predict,
    in_types_of,
    load_original,
    outputs_of_file,
)

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class ReferenceModelParams:
    """Parameters of a reference run of the original.

    Attributes:
        original: The callable that returns it.
        inputs: What is fed.
        axes: As the reference takes them.
        samples: The callable of real samples; None for none.
        options: The recipe's.
    """

    original: Entrypoint
    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]
    samples: Entrypoint | None
    options: ReferenceOptions


def run(context: StepContext) -> Outcome:
    """Write points.json and one .npz a point: what the original computes, under the model's names of outputs.

    Raises:
        StepError: It fails at a point, gives other outputs than the model has, or NaN.
    """
    params: ReferenceModelParams = context.params
    make_torch_deterministic()
    dtypes = _outputs(context)
    predict = load_original(
        context, params.original, params.inputs, tuple(dtypes), outputs_of_file(context)
    )
    writer = ReferenceWriter(context.output("reference"))
    samples, narrowed = 0, set[str]()
    shares: dict[str, float] = {}
    for name, sizes, feeds in reference_feeds(
        context,
        params.inputs,
        params.axes,
        points=params.options.points,
        seed=params.options.seed,
        samples=params.samples,
        max_samples=params.options.max_samples,
    ):
        try:
            found = predict(feeds)
        except StepError as error:
            what = f"{params.original.target} fails at point '{name}': {error.what}"
            raise StepError(what, where=error.where, fix=error.fix) from error
        if not writer.count:
            shares = _rounding(predict, feeds)
        outputs, changed = in_types_of(found, dtypes)
        refuse_nan(outputs, name, context.where, whose="PyTorch model")
        rounding = rounding_at(shares, outputs)
        writer.add(ReferencePoint(name, sizes, feeds, outputs, rounding=rounding))
        narrowed |= {f"'{each}' is {found[each].dtype} there" for each in changed}
        samples += name.startswith(SAMPLE)
    write_unusual(
        context.output("reference"),
        params.inputs,
        example_sizes(params.axes),
        lambda feeds: in_types_of(predict(feeds), dtypes)[0],
    )
    notes = tuple(
        f"output {each}, and was compared in the model's type" for each in sorted(narrowed)
    )
    return Outcome({"points": writer.finish(), "samples": samples}, notes=notes)


def _rounding(predict: Predict, feeds: Feeds) -> dict[str, float]:
    """Measure how far rounding alone moves each output; empty where the original does not run under a dispatch mode."""

    def run(moved: Feeds, seed: int) -> Mapping[str, np.ndarray]:
        with rounding_noise(seed) if seed else nullcontext():
            return predict(moved)

    phase("measuring what rounding does to it")
    try:
        return measured_rounding(run, feeds)
    except StepError:
        return {}


def _outputs(context: StepContext) -> dict[str, str]:
    """The model's outputs in order, with their types."""
    graph = load_model(context.input("model"), weights="left").graph
    return {each.name: dtype_name(each.type.tensor_type.elem_type) for each in graph.output}


KIND = StepKind(
    name="reference-model",
    version=4,
    params=ReferenceModelParams,
    inputs=("model", "config?"),
    outputs={"reference": "reference"},
    toolchain=("torch", "onnx", "numpy"),
    run=run,
    host_bound=True,
    user_code=True,
    entrypoints=lambda params: (
        (params.original,) if params.samples is None else (params.original, params.samples)
    ),
)
