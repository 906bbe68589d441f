"""Run the PyTorch module at several points and keep inputs and outputs to judge variants by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
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
    FittingPoints,
    ReferenceOptions,
    reference_feeds,
    write_unusual,
)
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from onnxbuild.onnxkit.export.torch_module import (
    ModuleRun,
    TorchSettings,
    check_signature,
    load_module,
    make_torch_deterministic,
    run_module,
)
from onnxbuild.onnxkit.export.user_settings import (
    has_fast_path,
    padded_feeds,
    refuse_other_settings,
)
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.modules.imagined_memory import imagined_bytes
from onnxbuild.onnxkit.modules.module_outputs import OutputError

if TYPE_CHECKING:
    import numpy as np
    import torch


@dataclass(frozen=True, slots=True)
class ReferenceParams:
    """Parameters of a reference run."""

    model: Entrypoint
    inputs: tuple[DummyInput, ...]
    outputs: tuple[str, ...]
    axes: tuple[Axis, ...]
    samples: Entrypoint | None
    options: ReferenceOptions


def run(context: StepContext) -> Outcome:
    """Write points.json and one .npz a point.

    Raises:
        StepError: forward fails at a point, its outputs hold NaN or are others as the user runs it, or a sample is
            not as declared.
    """
    params: ReferenceParams = context.params
    settings = make_torch_deterministic()
    module = load_module(context, params.model)
    check_signature(module, params.inputs, context.where)
    writer = ReferenceWriter(context.output("reference"))
    notes: list[str] = []
    samples = 0
    shares: dict[str, float] = {}
    fitting = FittingPoints(
        params.inputs, params.axes, partial(imagined_bytes, module, params.inputs)
    )
    for name, sizes, feeds in _all_feeds(context, fitting):
        found = _run_point(context, module, name, sizes, feeds)
        if not writer.count:
            shares = _rounding(context, module, feeds)
        _refuse_other_settings(context, module, settings, (name, feeds), first=not writer.count)
        refuse_nan(found.outputs, name, context.where, whose="PyTorch model")
        rounding = rounding_at(shares, found.outputs)
        point = ReferencePoint(name, sizes, feeds, found.outputs, rounding=rounding)
        if found.by_position and not writer.count and len(params.outputs) > 1:
            notes.append(_positions(point))
        infinite = _infinite_outputs(point)
        if infinite:
            notes.append(f"PyTorch's {infinite} holds infinities at point '{name}'")
        writer.add(point)
        samples += name.startswith(SAMPLE)
    write_unusual(
        context.output("reference"),
        params.inputs,
        example_sizes(params.axes),
        lambda feeds: (
            run_module(module, feeds, context.where, params.outputs, inputs=params.inputs).outputs
        ),
        rounding=partial(rounding_at, shares),
    )
    return Outcome(
        {"points": writer.finish(), "samples": samples},
        notes=(*notes, *fitting.notes, *writer.notes()),
    )


def _rounding(context: StepContext, module: torch.nn.Module, feeds: Feeds) -> dict[str, float]:
    """Measure how far rounding alone moves each output; empty where the module does not run under a dispatch mode."""
    params: ReferenceParams = context.params

    def run(moved: Feeds, seed: int) -> Mapping[str, np.ndarray]:
        with rounding_noise(seed) if seed else nullcontext():
            return run_module(
                module, moved, context.where, params.outputs, inputs=params.inputs
            ).outputs

    phase("measuring what rounding does to it")
    try:
        return measured_rounding(run, feeds)
    except StepError:
        return {}


def _refuse_other_settings(
    context: StepContext,
    module: torch.nn.Module,
    settings: TorchSettings,
    point: tuple[str, Feeds],
    *,
    first: bool,
) -> None:
    """Compare with a run under the user's settings: at the first point, at all where an encoder has a fast path."""
    params: ReferenceParams = context.params
    name, feeds = point
    fast = has_fast_path(module)
    tried = [(name, feeds)] if first or fast else []
    if first and fast:
        tried += [(f"{name}, padded", each) for each in padded_feeds(params.inputs, feeds)]
    for shown, each in tried:
        try:
            ours = run_module(module, each, context.where, params.outputs, inputs=params.inputs)
        except StepError:
            continue  # `_run_point` reports it, unless it is about padding
        refuse_other_settings(
            module, each, ours.outputs, settings, context.where, inputs=params.inputs, shown=shown
        )


def _all_feeds(
    context: StepContext, fitting: FittingPoints
) -> Iterator[tuple[str, Mapping[str, int], Feeds]]:
    params: ReferenceParams = context.params
    return reference_feeds(
        context,
        params.inputs,
        params.axes,
        points=params.options.points,
        seed=params.options.seed,
        samples=params.samples,
        max_samples=params.options.max_samples,
        fitting=fitting,
    )


def _run_point(
    context: StepContext,
    module: torch.nn.Module,
    name: str,
    sizes: Mapping[str, int],
    feeds: Feeds,
) -> ModuleRun:
    from onnxbuild.onnxkit.export.forward_faults import explain_failure

    params: ReferenceParams = context.params
    try:
        return run_module(module, feeds, context.where, params.outputs, inputs=params.inputs)
    except OutputError:
        raise
    except StepError as error:
        shown = ", ".join(f"{axis}={size}" for axis, size in sizes.items()) or "fixed shapes"
        other = [f"'{axis.name}'" for axis in params.axes if sizes[axis.name] != axis.example]
        narrow = f"narrow {' and '.join(other)} in `dynamic_axes` to what the model takes"
        explained = explain_failure(
            error, module, feeds, params.inputs, otherwise=narrow if other else ""
        )
        what = f"PyTorch fails at point '{name}' ({shown}): {error.what}"
        raise StepError(what, where=error.where, fix=explained.fix) from error


def _positions(point: ReferencePoint) -> str:
    """Say which output is which, where several names were given and nothing but their order decides."""
    shown = (f"{name} is {each.dtype} {list(each.shape)}" for name, each in point.outputs.items())
    return f"outputs go by position, as forward returns a tuple: {', '.join(shown)}"


def _infinite_outputs(point: ReferencePoint) -> str:
    import numpy as np

    return ", ".join(
        f"'{name}'"
        for name, array in point.outputs.items()
        if array.dtype.kind == "f" and bool(np.isinf(array).any())
    )


def _entrypoints(params: ReferenceParams) -> tuple[Entrypoint, ...]:
    return (params.model,) if params.samples is None else (params.model, params.samples)


KIND = StepKind(
    name="reference",
    version=6,
    params=ReferenceParams,
    inputs=(),
    outputs={"reference": "reference"},
    toolchain=("torch", "numpy"),
    run=run,
    host_bound=True,
    user_code=True,
    entrypoints=_entrypoints,
)
