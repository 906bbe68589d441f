"""The user's module and one example of what it takes: what every format is made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.core.axis import sums_of
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.data.feed_checks import refuse_nan
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.export.probe_sizes import probe_points
from onnxbuild.onnxkit.export.randomness import refuse_random
from onnxbuild.onnxkit.export.torch_module import (
    check_signature,
    load_module,
    make_torch_deterministic,
    run_module,
)

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class ModuleExample:
    """A module, feeds that it runs on, and the names of its outputs."""

    module: torch.nn.Module
    feeds: Feeds
    outputs: tuple[str, ...]


def load_example(
    context: StepContext,
    model: Entrypoint,
    inputs: Sequence[DummyInput],
    outputs: Sequence[str],
    axes: Sequence[Axis],
) -> ModuleExample:
    """Load the module and run it once, at sizes that bake in as little as they can.

    Raises:
        StepError: The module, its inputs or its outputs are not as declared.
    """
    from onnxbuild.onnxkit.export.export_check import probe_feeds

    make_torch_deterministic()
    module = load_module(context, model)
    check_signature(module, inputs, context.where)
    feeds = probe_feeds(inputs, probe_points(axes, sums_of([each.shape for each in inputs]))[0])
    found = run_module(module, feeds, context.where, outputs, inputs=inputs).outputs
    refuse_nan(found, "exported", context.where, whose="PyTorch model")
    refuse_random(module, feeds, found, context.where, inputs=inputs)
    return ModuleExample(module, feeds, tuple(found))
