"""`calibration`: the data that modes with few bits look at."""

from __future__ import annotations

from onnxbuild.expansion.feature import Feature, Section
from onnxbuild.steps.calibrate import CalibrationOptions

FEATURE = Feature(
    name="calibration",
    sections=(
        Section(
            name="calibration",
            options=CalibrationOptions,
            callables={
                "data": (
                    "calibration",
                    (
                        "feeds to calibrate on: a callable that yields them, .npy or .npz files, or "
                        "`dummy`"
                    ),
                ),
            },
            files=("data",),
            words="calib calibration_data",
        ),
    ),
)
