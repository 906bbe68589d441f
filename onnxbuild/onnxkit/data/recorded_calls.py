"""PyTorch's calls of a pipeline's components, as feeds: what really goes into a component, at the sizes that occur."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from onnxbuild.core.entrypoint import COMPONENT, PIPELINE_DATA, Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.reference_files import read_points, read_reference
from onnxbuild.onnxkit.frameworks import np

CALLS = "calls"
"""Folder in a pipeline's reference: a folder for each component, with its calls as points. Also the input of steps that
take these as data."""

OPTIONAL_CALLS = f"{CALLS}?"
"""The same among a step kind's inputs."""


def calls_folder(context: StepContext, data: Entrypoint) -> Path:
    """Return the folder of a component's calls, in the step's input."""
    assert data.target == PIPELINE_DATA
    return context.input(CALLS) / CALLS / str(data.args[COMPONENT])


def recorded_feeds(context: StepContext, data: Entrypoint, most: int) -> Iterator[Feeds]:
    """Yield what went into a component in calls that are drawn from all of them, with a fixed seed: they differ in sizes."""
    folder = calls_folder(context, data)
    drawn = np.random.default_rng(0).permutation(len(read_points(folder)))[:most]
    for point in read_reference(folder, drawn.tolist()):
        yield dict(point.feeds)
