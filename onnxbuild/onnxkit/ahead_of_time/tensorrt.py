"""TensorRT's engines and timing cache, built by its execution provider into a folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from onnxbuild.core.axis import Dimension, shape_at
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.core.target import Link, Target
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session

TENSORRT = "tensorrt"

CHOSEN_BY_TIMING = "TensorRT chooses kernels by timing them"
"""Reason why its compiled files differ from run to run."""

FOLDER_OPTIONS = ("trt_engine_cache_path", "trt_timing_cache_path")
"""Options that name the folder of the caches."""


def engine_options(
    inputs: Sequence[DummyInput], axes: Sequence[Axis], *, fp16: bool
) -> dict[str, str]:
    """The provider's options with which engines are built, and found again; but FOLDER_OPTIONS.

    One optimization profile spans the dynamic axes, so that one engine serves all their sizes and
    none is built again when another size comes.

    Args:
        inputs: The model's.
        axes: Their ranges.
        fp16: Whether TensorRT may choose fp16 kernels.
    """
    options = {
        "trt_engine_cache_enable": "1",
        "trt_timing_cache_enable": "1",
        "trt_force_timing_cache": "0",
        "trt_fp16_enable": str(int(fp16)),
    }
    if any(isinstance(size, str) for each in inputs for size in each.shape):
        for name, attribute in (("min", "min"), ("opt", "example"), ("max", "max")):
            sizes = {axis.name: int(getattr(axis, attribute)) for axis in axes}
            options[f"trt_profile_{name}_shapes"] = ",".join(
                f"{each.name}:{_shape(each.shape, sizes)}" for each in inputs
            )
    return options


def build_engines(
    model: Path, target: Path, options: Mapping[str, str], feeds: Iterable[Feeds], where: str
) -> list[str]:
    """Run a model on TensorRT so that its caches fill; returns the files they are, sorted.

    Args:
        model: Its folder.
        target: Gets the caches.
        options: Provider options from `engine_options`.
        feeds: Sets of inputs to run on.
        where: `recipe:step`, for messages.

    Raises:
        StepError: TensorRT is not there, refuses the model, or takes none of its nodes.
    """
    folders = dict.fromkeys(FOLDER_OPTIONS, str(target))
    tensorrt = Target(TENSORRT, (Link(TENSORRT, {**options, **folders}),))
    session = open_session(model, target=tensorrt, where=where)
    for each in feeds:
        run_session(session, each, where=where)
    del session  # the timing cache is written when it goes
    made = sorted(path.name for path in target.iterdir() if path.is_file())
    if not any(name.endswith(".engine") for name in made):
        raise StepError(
            "TensorRT built no engine: it takes no node of this model",
            where=where,
            fix="run it on `providers: [cuda]`, or take `tensorrt` out of `ahead_of_time`",
        )
    return made


def _shape(shape: Sequence[Dimension], sizes: Mapping[str, int]) -> str:
    return "x".join(map(str, shape_at(shape, sizes)))
