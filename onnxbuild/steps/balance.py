"""Rewrite a model, equal in value, so that 8 bits lose less of it: outliers apart, channels even."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.errors import NotApplicableError
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.data.calibration_data import DataParams
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.recorded_calls import OPTIONAL_CALLS
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.linear_nodes import linear_nodes
from onnxbuild.onnxkit.model.model_files import load_model, save_model
from onnxbuild.onnxkit.optimize.held_constants import folded_constants
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions.calibration_feeds import calibration_feeds
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session

if TYPE_CHECKING:
    import numpy as np

_COMPARED = 4
"""Feeds on which the model is run before and after."""

_MOST_ERROR = 1e-4
"""Bound, relative to an output's greatest magnitude. What float32 rounds differently is a hundredth of it."""


def run(context: StepContext) -> Outcome:
    """Write the model and report.json: which channels were taken out, which values scaled.

    Where there is nothing to balance, the model stays as it is, and a note says so.

    Raises:
        StepError: The data yields nothing, or not what the recipe declares, a value is NaN, or
            the model that was made computes something else.
    """
    from onnxbuild.onnxkit.calibrate.channel_statistics import measure_peaks
    from onnxbuild.onnxkit.quantize.balancing import (
        balance_values,
        branch_outliers,
        hidden_values,
        normalized_values,
    )

    params: DataParams = context.params
    model = load_model(folded_constants(context), weights="mapped")
    channels = {each.activation: each.channels for each in linear_nodes(model)}
    values = [*hidden_values(model), *normalized_values(model)]
    source = params.source
    kept: list[Feeds] = []
    found = measure_peaks(
        model,
        {name: channels[name] for name in values},
        _keeping(kept, calibration_feeds(context, source, params.samples)),
        scratch=context.scratch / "probed",
        where=context.where,
    )
    if found.samples == 0:
        raise source.nothing(params.samples, context.where)
    model = load_model(folded_constants(context), weights="mapped")
    branches = branch_outliers(model, found.peaks)
    balanced = balance_values(model, found.peaks)
    canonicalize(model)
    save_model(model, context.output("model"))
    del model
    error = _compare(context, kept) if branches or balanced else 0.0
    write_report(
        context.output("report"),
        {
            "samples": found.samples,
            "branches": [asdict(each) for each in branches],
            "balanced": [asdict(each) for each in balanced],
        },
    )
    metrics = {
        "samples": found.samples,
        "branches": len(branches),
        "outlier_channels": sum(len(each.channels) for each in branches),
        "balanced_values": len(balanced),
        "balanced_nodes": sum(len(each.nodes) for each in balanced),
        "max_relative_error": error,
    }
    notes = []
    if not branches and not balanced:
        notes.append(
            "nothing to balance: the model has no multiplication that reads a LayerNormalization, "
            "and no MLP with outlier channels; it stays as it is"
        )
    if source.is_random:
        notes.append(
            "channels are balanced by random inputs, which is no calibration: name real data in "
            "`calibration.data`"
        )
    return Outcome(metrics, notes=tuple(notes))


def _keeping(kept: list[Feeds], feeds: Iterable[Feeds]) -> Iterator[Feeds]:
    """Pass feeds on; the first few are kept."""
    for sample in feeds:
        if len(kept) < _COMPARED:
            kept.append(sample)
        yield sample


def _compare(context: StepContext, feeds: Iterable[Feeds]) -> float:
    """The greatest difference of an output, relative to its greatest magnitude.

    Raises:
        StepError: It is more than rounding.
    """
    from onnxbuild.onnxkit.quantize.balancing import relative_error

    before, after = (
        _outputs(folder, feeds, context.where)  # one session after the other: each is a model
        for folder in (context.input("model"), context.output("model"))
    )
    most = max(relative_error(*each) for each in zip(before, after, strict=True))
    if not most <= _MOST_ERROR:
        raise NotApplicableError(
            f"the balanced model differs from the one it was made of by {most:.2g} of an output's "
            f"greatest magnitude; expected {_MOST_ERROR:g} at most",
            where=context.where,
            fix="write `balance: false`; and please report the model to onnxbuild",
        )
    return float(f"{most:.3g}")


def _outputs(folder: Path, feeds: Iterable[Feeds], where: str) -> list[dict[str, np.ndarray]]:
    session = open_session(folder, optimize=False, lean=True, where=where)
    return [run_session(session, sample, where) for sample in feeds]


KIND = StepKind(
    name="balance",
    version=3,
    params=DataParams,
    inputs=("model", OPTIONAL_CALLS),
    outputs={"model": "onnx-model", "report": "report"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
    host_bound=True,
    user_code=True,
    entrypoints=lambda params: (params.data,),
)
