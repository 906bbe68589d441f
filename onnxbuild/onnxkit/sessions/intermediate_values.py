"""Values of a graph reduced inside the graph, one sample after the other: what is looked at is small."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.host.progress import counted
from onnxbuild.onnxkit.model.model_files import save_graph
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_sample

if TYPE_CHECKING:
    import numpy as np
    import onnx

PREFIX = "onnxbuild/probe"
"""Prefix of the names of all that is added to a graph."""


@dataclass(frozen=True, slots=True)
class ValueProbe:
    """Nodes and constants that are added to a graph to observe a value.

    Attributes:
        nodes: They read the value, or what is in the graph besides.
        constants: What else they read.
        outputs: Float32 values that are looked at.
    """

    nodes: tuple[onnx.NodeProto, ...]
    constants: tuple[onnx.TensorProto, ...]
    outputs: tuple[str, ...]


def as_rows(value: str, channels: int, prefix: str) -> tuple[ValueProbe, str]:
    """Return what makes a value two-dimensional, its last axis the channels; and the name of that."""
    import numpy as np
    import onnx

    shape = onnx.numpy_helper.from_array(np.asarray([-1, channels], np.int64), f"{prefix}/shape")
    rows = f"{prefix}/rows"
    node = onnx.helper.make_node("Reshape", [value, shape.name], [rows])
    return ValueProbe((node,), (shape,), ()), rows


def probed(
    model: onnx.ModelProto,
    probes: Mapping[str, ValueProbe],
    feeds: Iterable[Feeds],
    *,
    scratch: Path,
    where: str,
) -> Iterator[dict[str, tuple[np.ndarray, ...]]]:
    """Yield for each feed: name -> its probe's outputs; memory holds one sample's at a time.

    One thread and no graph optimization: values are the same each time on one kind of CPU.

    Args:
        model: Weights loaded or mapped; gets outputs added and is used up.
        probes: Name -> its probe.
        feeds: Checked feeds.
        scratch: A folder for the augmented model.
        where: `recipe:step`, for messages.

    Raises:
        StepError: ONNX Runtime fails on a sample.
    """
    import onnx

    graph = model.graph
    for probe in probes.values():
        graph.initializer.extend(probe.constants)
        graph.node.extend(probe.nodes)
        graph.output.extend(
            onnx.helper.make_tensor_value_info(each, onnx.TensorProto.FLOAT, None)
            for each in probe.outputs
        )
    save_graph(model, scratch)
    del model, graph
    session = open_session(scratch, optimize=False, lean=True, where=where)
    names = [each for probe in probes.values() for each in probe.outputs]
    for number, sample in enumerate(counted(feeds, "samples")):
        arrays = iter(run_sample(session, sample, number, names, where))
        yield {name: tuple(next(arrays) for _ in probe.outputs) for name, probe in probes.items()}
