"""Run a model on the user's data and draw the range of each activation."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from onnxbuild.core.params import option
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.sizes import counted
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.calibrate.calibration import Calibration, Method, Rule, calibrate
from onnxbuild.onnxkit.calibrate.ranges import RANGES_FILE
from onnxbuild.onnxkit.calibrate.thresholds import IntegerGrid
from onnxbuild.onnxkit.data.calibration_data import FeedSource
from onnxbuild.onnxkit.data.recorded_calls import OPTIONAL_CALLS
from onnxbuild.onnxkit.sessions.calibration_feeds import calibration_feeds
from onnxbuild.onnxkit.sessions.element_types import load_typed

MEANS_FILE = "means.json"

_FEW_SAMPLES = 100
"""ONNX Runtime's and PyTorch's guides calibrate with 100 samples or more."""


@dataclass(frozen=True, slots=True)
class CalibrationOptions:
    """Data and method to find the ranges of static variants."""

    method: Method = option(
        "minmax",
        help="how a range is drawn from the values seen: all of them (minmax), the mean of the "
        "samples' ranges (moving_average), without the tails (percentile), where the quantized "
        "distribution diverges least (entropy), or with the least squared error (mse)",
    )
    samples: int = option(100, help="how many samples of the data are used", minimum=1)
    percentile: float = option(
        99.99, help="of `percentile`: share of values inside the range", minimum=50, maximum=100
    )
    averaging: float = option(
        0.01, help="for `moving_average`: weight of a new sample", minimum=0, maximum=1
    )
    seed: int = option(0, help="seed of the random inputs of `data: dummy`", minimum=0)


@dataclass(frozen=True, slots=True)
class CalibrateParams:
    """Parameters of a calibration.

    Attributes:
        data: A callable that yields feeds, files that hold them, or the dummy inputs.
        grid: What ranges will be mapped to; `entropy` and `mse` go by it.
        means: Measure the means of input channels as well, for `bias_correction`.
    """

    data: Entrypoint
    inputs: tuple[DummyInput, ...]
    options: CalibrationOptions
    axes: tuple[Axis, ...] = ()
    grid: IntegerGrid = field(default_factory=IntegerGrid)
    means: bool = False


def run(context: StepContext) -> Outcome:
    """Write ranges.json: what each value's range is, how it was drawn, how much it clips, and the narrowest part of outputs.

    And, if asked, means.json: value -> the mean of each of its channels.

    Raises:
        StepError: The data yields nothing, or not what the recipe declares, or a value is NaN.
    """
    params: CalibrateParams = context.params
    options = params.options
    source = FeedSource(params.data, params.inputs, params.axes, options.seed)
    found = calibrate(
        lambda: load_typed(context.input("model"), weights="mapped"),
        calibration_feeds(context, source, options.samples),
        Rule(options.method, params.grid, options.percentile, options.averaging, params.means),
        scratch=context.scratch,
        where=context.where,
    )
    if found.samples == 0:
        raise source.nothing(options.samples, context.where)
    _write(context.output("calibration") / RANGES_FILE, _report(params, found))
    if params.means:
        means = {
            name: [_short(each) for each in found.means[name]] for name in sorted(found.means)
        }
        _write(context.output("calibration") / MEANS_FILE, means)
    return Outcome(
        metrics={
            "method": options.method,
            "samples": found.samples,
            "tensors": len(found.ranges),
            "clipped_tensors": len(found.clipped),
        },
        notes=tuple(_notes(source, found.samples, options.samples)),
    )


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _report(params: CalibrateParams, found: Calibration) -> dict[str, object]:
    grid = params.grid
    used = params.options.method in {"entropy", "mse", "percentile"}
    return {
        "method": params.options.method,
        "samples": found.samples,
        **({"bits": grid.bits, "symmetric": grid.symmetric} if used else {}),
        "ranges": _shortened(found.ranges),
        "seen": _shortened(
            {name: seen for name, seen in found.seen.items() if seen != found.ranges[name]}
        ),
        "clipped": {name: _short(share, 3) for name, share in found.clipped.items()},
        "unbounded": list(found.unbounded),
        "narrowest": {name: _short(found.narrowest[name]) for name in sorted(found.narrowest)},
    }


def _notes(source: FeedSource, samples: int, wanted: int) -> list[str]:
    notes = []
    if source.is_random:
        notes.append(
            "the ranges come from random inputs, which is no calibration: name real data in "
            "`calibration.data`"
        )
    if samples < wanted:
        shown = counted(samples, "sample")
        notes.append(f"{source.label} yields {shown}, fewer than the {wanted} asked for")
    if samples < _FEW_SAMPLES:
        verb = "is" if samples == 1 else "are"
        shown = f"{counted(samples, 'sample')} {verb} few"
        notes.append(f"{shown} to calibrate with; {_FEW_SAMPLES} are usual")
    return notes


def _shortened(ranges: Mapping[str, tuple[float, float]]) -> dict[str, list[float]]:
    return {name: [_short(low), _short(high)] for name, (low, high) in ranges.items()}


def _short(value: float, digits: int = 9) -> float:
    """Round to few digits: nine read back as the same float32 (IEEE 754)."""
    return float(f"{value:.{digits}g}")


KIND = StepKind(
    name="calibrate",
    version=6,
    params=CalibrateParams,
    inputs=("model", OPTIONAL_CALLS),
    outputs={"calibration": "calibration"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
    host_bound=True,
    user_code=True,
    entrypoints=lambda params: (params.data,),
)
