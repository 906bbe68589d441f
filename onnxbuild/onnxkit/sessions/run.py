"""Running a session on feeds, whatever precision its inputs have; values inside a graph, reduced there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.frameworks import np, onnx, onnxruntime
from onnxbuild.onnxkit.host.progress import counted
from onnxbuild.onnxkit.model.model_files import save_graph
from onnxbuild.onnxkit.model.tensor_types import ort_feeds
from onnxbuild.onnxkit.sessions.open import first_line, open_session, session_errors
from onnxbuild.onnxkit.sessions.rpc_client import HostedSession


def fit_feeds(session: onnxruntime.InferenceSession, feeds: Feeds) -> Feeds:
    """The feeds that the model takes, float32 as float16 or bfloat16 where it takes that."""
    fitting = {
        value.name: feeds[value.name].astype("float16")
        if value.type == "tensor(float16)" and feeds[value.name].dtype == "float32"
        else feeds[value.name]
        for value in session.get_inputs()
        if value.name in feeds
    }
    return fitting if isinstance(session, HostedSession) else ort_feeds(session, fitting)


def run_sample(
    session: onnxruntime.InferenceSession,
    sample: Feeds,
    number: int,
    outputs: Sequence[str],
    where: str,
) -> list[np.ndarray]:
    """The outputs asked for, of a sample of the calibration data; none for none.

    Args:
        session: A model whose inputs the sample fits.
        number: Which it is, for messages.
        where: `recipe:step`, for messages.

    Raises:
        StepError: ONNX Runtime fails.
    """
    try:
        return session.run(outputs, fit_feeds(session, sample)) if outputs else []
    except session_errors() as error:
        raise StepError(
            f"ONNX Runtime fails on calibration sample {number}: {first_line(error)}",
            where=where,
            fix="see that the sample's sizes are ones the model takes",
        ) from error


def run_session(
    session: onnxruntime.InferenceSession,
    feeds: Feeds,
    where: str = "",
    outputs: Sequence[str] = (),
) -> dict[str, np.ndarray]:
    """Output name -> array, in the graph's order.

    Args:
        where: `recipe:step`, for messages.
        outputs: Those to fetch; empty for all.

    Raises:
        StepError: ONNX Runtime fails.
    """
    names = list(outputs) or [value.name for value in session.get_outputs()]
    try:
        return dict(zip(names, session.run(names, fit_feeds(session, feeds)), strict=True))
    except session_errors() as error:
        raise StepError(
            f"ONNX Runtime fails: {first_line(error)}",
            where=where,
            fix="see that the sizes are ones the model takes",
        ) from error


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
        scratch: A folder for the augmented model.
        where: `recipe:step`, for messages.

    Raises:
        StepError: ONNX Runtime fails on a sample.
    """
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
