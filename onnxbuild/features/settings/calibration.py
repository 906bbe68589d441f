"""`calibration`: the data that modes with few bits look at."""

from onnxbuild.core.entrypoint import PIPELINE_DATA
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
                        "feeds to calibrate on: a callable that yields them, .npy or .npz files, "
                        "`dummy`, or `pipeline`: what really goes into the component"
                    ),
                )
            },
            files=("data",),
            built_in={"data": (PIPELINE_DATA,)},
            words="calib calibration_data",
        ),
    ),
)
