"""Run a model on the user's data and keep the range of each activation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import option
from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.feeds import Feeds, check_feeds
from onnxbuild.onnxkit.ranges import measure_ranges
from onnxbuild.onnxkit.user_data import iterate_user
from onnxbuild.onnxkit.value_types import load_typed

RANGES_FILE = "ranges.json"

_FEW_SAMPLES = 100
"""ONNX Runtime's and PyTorch's guides calibrate with 100 samples or more."""


@dataclass(frozen=True, slots=True)
class CalibrationOptions:
    """How ranges are found."""

    method: Literal["minmax"] = option("minmax", help="how a range is drawn from the values seen")
    samples: int = option(100, help="how many samples of the data are used", minimum=1)


@dataclass(frozen=True, slots=True)
class CalibrateParams:
    """All that steers a calibration.

    Attributes:
        data: A callable that yields feeds: input name -> array.
    """

    data: Entrypoint
    inputs: tuple[DummyInput, ...]
    options: CalibrationOptions


def run(context: StepContext) -> Outcome:
    """Write ranges.json: tensor name -> [least, greatest], and what is not fit to be quantized.

    Raises:
        StepError: The data yields nothing, or not what the recipe declares, or a value is NaN.
    """
    params: CalibrateParams = context.params
    wanted = params.options.samples
    ranges = measure_ranges(
        load_typed(context.input("model")),
        islice(_samples(context), wanted),
        scratch=context.scratch,
        where=context.where,
    )
    target = params.data.target
    if ranges.samples == 0:
        raise StepError(
            f"{target} yields no sample; expected {wanted}",
            where=context.where,
            fix="yield at least one mapping of input name -> array",
        )
    report = {
        "method": params.options.method,
        "samples": ranges.samples,
        "ranges": {
            name: [_short(low), _short(high)]
            for name, (low, high) in sorted(ranges.bounds.items())
        },
        "unbounded": sorted(ranges.unbounded),
    }
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    (context.output("calibration") / RANGES_FILE).write_text(text, encoding="utf-8")
    notes = []
    if ranges.samples < wanted:
        notes.append(
            f"{target} yields {ranges.samples} samples, fewer than the {wanted} asked for"
        )
    if ranges.samples < _FEW_SAMPLES:
        notes.append(
            f"{ranges.samples} samples are few to calibrate with; {_FEW_SAMPLES} are usual"
        )
    return Outcome(
        metrics={"samples": ranges.samples, "tensors": len(ranges.bounds)}, notes=tuple(notes)
    )


def _samples(context: StepContext) -> Iterator[Feeds]:
    params: CalibrateParams = context.params
    for n, feeds in enumerate(iterate_user(context, params.data)):
        place = f"{context.where} ({params.data.target}, sample {n})"
        yield check_feeds(feeds, params.inputs, place)


def _short(value: float) -> float:
    """A float32 in the fewest digits that read back as itself: nine (IEEE 754)."""
    return float(f"{value:.9g}")


KIND = StepKind(
    name="calibrate",
    version=1,
    params=CalibrateParams,
    inputs=("model",),
    outputs={"calibration": "calibration"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
    section="calibration",
    options=CalibrationOptions,
    host_bound=True,
    user_code=True,
    entrypoints=lambda params: (params.data,),
)
