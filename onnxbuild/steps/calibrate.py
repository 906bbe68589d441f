"""Run a model on the user's data and keep the range of each activation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onnxbuild.core.params import option
from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind


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
    """Write ranges.json: tensor name -> [least, greatest]."""
    raise NotImplementedError


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
