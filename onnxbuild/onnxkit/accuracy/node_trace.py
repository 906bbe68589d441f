"""Two models side by side, tensor by tensor: where in the graph, or in a build step, their values part."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.core.target import CPU_TARGET, Target
from onnxbuild.onnxkit.accuracy.comparison import Noise, decibels
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, read_reference
from onnxbuild.onnxkit.frameworks import np, onnx, onnxruntime
from onnxbuild.onnxkit.model.graphs import all_graphs, graphs_below, initializers, subgraphs
from onnxbuild.onnxkit.model.model_files import load_model, model_path, weight_array
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session


def retyped_weights(expected: onnx.ModelProto, actual: onnx.ModelProto) -> set[str]:
    """Return the names of the expected model's weights that have another type in the other model.

    Those that the other model computes, such as by a Cast from bfloat16, are among them.
    """
    types = {each.name: each.data_type for each in initializers(actual)}
    return {each.name for each in initializers(expected) if types.get(each.name) != each.data_type}


def edited_weights(expected: Path, actual: Path) -> set[str]:
    """Return the names of the expected model's weights that have other elements in the other model.

    Args:
        expected: Folder of a model.
        actual: Folder of the other.

    Raises:
        StepError: A model can't be read.
    """
    models = [load_model(each, weights="mapped") for each in (expected, actual)]
    others = {each.name: each for each in initializers(models[1])}
    return {
        each.name
        for each in initializers(models[0])
        if each.name in others and not _equal(each, others[each.name])
    }


def _equal(one: onnx.TensorProto, other: onnx.TensorProto) -> bool:
    """Return whether two tensors have the same type, shape and elements, bit by bit."""
    if (one.data_type, list(one.dims)) != (other.data_type, list(other.dims)):
        return False
    if one.string_data:
        return list(one.string_data) == list(other.string_data)
    return weight_array(one).tobytes() == weight_array(other).tobytes()


_TYPES = ("tensor(float)", "tensor(float16)", "tensor(double)")
_MOST_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class NodeError:
    """Error before and after one node of the expected model.

    Attributes:
        name: Name of the node.
        op_type: Its operator.
        before: Noise to signal of its worst input, as energies (the nearest tensors before it that
            both models have).
        after: Noise to signal of its worst output; infinite if that is not finite.
        cosine: Cosine similarity of that output.
        lost: Values of its outputs that are not finite, `12 NaN`; empty if all are.
        largest: Largest magnitude among its inputs and outputs in the expected model.
        changed: Whether the other model computes it in another way.
        behind: Changed nodes before it whose own outputs the other model has not: a Conv that its
            Relu was fused into.
        now: Operator that makes its first output in the other model.
        bodies: Number of nodes in the bodies that it runs (If, Loop, Scan): their values can't be
            compared one by one, so its own outputs stand for them.
        inside: Nodes in those bodies that the other model computes in another way.
    """

    name: str
    op_type: str
    before: float
    after: float
    cosine: float
    lost: str
    largest: float
    changed: bool
    behind: tuple[str, ...] = ()
    now: str = ""
    bodies: int = 0
    inside: tuple[str, ...] = ()

    @property
    def added(self) -> float:
        """Noise to signal that came in here; infinite where values were lost here."""
        if math.isinf(self.after):
            return 0.0 if math.isinf(self.before) else math.inf
        return self.after - self.before

    @property
    def after_db(self) -> float:
        """SQNR of the worst output."""
        return decibels(self.after)


def trace(
    expected: Path,
    actual: Path,
    feeds: Callable[[], Iterable[Feeds]],
    *,
    target: Target = CPU_TARGET,
    most_bytes: int = _MOST_BYTES,
) -> tuple[NodeError, ...]:
    """Run both models on the same inputs and compare each float tensor that both have by name.

    Sessions leave the graphs as they are written, so that every tensor is there. Tensors are
    fetched a few at a time: the more, the smaller they are.

    Args:
        expected: Folder of the model that is right; a traced copy is written into it.
        actual: Folder of the other, likewise.
        feeds: Gives the inputs, anew each time it is called.
        target: Target that both run on.
        most_bytes: Of one model's tensors that are held at a time, one at least.

    Returns:
        The nodes of `expected` with an output that could be compared, in the graph's order.

    Raises:
        StepError: A model can't be opened, or ONNX Runtime fails.
    """
    models = _graphs(expected, actual)
    names = [_made(each) for each in models]
    seen_as = dequantized(models[1])
    shared = {name: seen_as.get(name, name) for name in names[0] if name in names[1]}
    changed, inside = _changed((expected, actual), models)
    sessions = [
        _open_traced(model, folder, wanted, target)
        for model, folder, wanted in zip(
            models, (expected, actual), (list(shared), list(shared.values())), strict=True
        )
    ]
    types = [{each.name: each.type for each in session.get_outputs()} for session in sessions]
    floats = {
        name: other
        for name, other in shared.items()
        if types[0].get(name) in _TYPES and types[1].get(other) in _TYPES
    }
    found = _compare(sessions, floats, feeds, most_bytes)
    makers = {name: node.op_type for node in models[1].graph.node for name in node.output}
    return tuple(_nodes(models[0], found, changed, inside, makers))


def dequantized(model: onnx.ModelProto) -> dict[str, str]:
    """Value -> what its readers see in its place, where it is quantized and dequantized at once.

    The value itself may lack a Relu, which quantizers leave to the clipping at zero.
    """
    nodes = model.graph.node
    low = {node.output[0]: node.input[0] for node in nodes if node.op_type == "QuantizeLinear"}
    return {
        low[node.input[0]]: node.output[0]
        for node in nodes
        if node.op_type == "DequantizeLinear" and node.input[0] in low
    }


def _made(model: onnx.ModelProto) -> dict[str, None]:
    """The values that nodes of the main graph make, in order."""
    return {
        name: None
        for node in model.graph.node
        if node.op_type != "Constant"
        for name in node.output
        if name
    }


def inner_nodes(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """The nodes of the bodies that `node` runs, and of those in them."""
    for body in subgraphs(node):
        for graph in graphs_below(body):
            yield from graph.node


def changed_nodes(expected: Path, actual: Path) -> set[str]:
    """Names of the expected model's nodes that the other has not, or has on other tensors.

    Args:
        expected: Folder of a model.
        actual: Folder of the other.

    Raises:
        StepError: A model can't be read.
    """
    return _changed((expected, actual), _graphs(expected, actual))[0]


def _graphs(*folders: Path) -> list[onnx.ModelProto]:
    """Models without the weights that are in files of their own."""
    return [load_model(each, weights="left") for each in folders]


def _changed(
    folders: tuple[Path, Path], models: Sequence[onnx.ModelProto]
) -> tuple[set[str], dict[str, tuple[str, ...]]]:
    """The expected model's nodes that the other has not, or has on other tensors.

    The elements of weights count only where all nodes are the same otherwise: a quantizer that changes
    nodes corrects biases of others, which makes up for errors.

    Returns: Names of nodes of the main graph; node with bodies -> names of nodes in those.
    """
    expected, actual = models
    found, inside = _differing(expected, actual, retyped_weights(expected, actual))
    return (found, inside) if found else _differing(expected, actual, edited_weights(*folders))


def _differing(
    expected: onnx.ModelProto, actual: onnx.ModelProto, weights: set[str]
) -> tuple[set[str], dict[str, tuple[str, ...]]]:
    """The same, where the weights that differ are known."""
    others = {node.name: node for graph in all_graphs(actual) for node in graph.node}

    def same(node: onnx.NodeProto) -> bool:
        other = others.get(node.name)
        return (
            other is not None
            and other.op_type == node.op_type
            and list(other.input) == list(node.input)
            and weights.isdisjoint(node.input)
        )

    inside = {
        node.name: tuple(each.name for each in inner_nodes(node) if not same(each))
        for node in expected.graph.node
    }
    found = {node.name for node in expected.graph.node if inside[node.name] or not same(node)}
    return found, {name: nodes for name, nodes in inside.items() if nodes}


def _open_traced(
    model: onnx.ModelProto, folder: Path, names: Sequence[str], target: Target
) -> onnxruntime.InferenceSession:
    """A session that also has `names` as outputs; weights stay in the files they are in."""
    have = {value.name for value in model.graph.output}
    traced = onnx.ModelProto()
    traced.CopyFrom(model)
    traced.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in have)
    path = model_path(folder).with_name("traced.onnx")
    path.write_bytes(traced.SerializeToString())
    return open_session(path, target=target, optimize=False)


def _compare(
    sessions: Sequence[onnxruntime.InferenceSession],
    names: Mapping[str, str],
    feeds: Callable[[], Iterable[Feeds]],
    most_bytes: int,
) -> dict[str, Noise]:
    found = {name: Noise() for name in names}
    start, count = 0, 1
    while start < len(names):
        chunk = dict(itertools.islice(names.items(), start, start + count))
        most = 1
        for item in feeds():
            expected = run_session(sessions[0], item, outputs=list(chunk))
            actual = run_session(sessions[1], item, outputs=list(chunk.values()))
            most = max(most, sum(array.nbytes for array in expected.values()))
            for name, other in chunk.items():
                found[name].add(expected[name], actual[other])
        start += len(chunk)
        count = max(1, min(4 * count, int(len(chunk) * most_bytes / most)))
    return found


def _nodes(
    model: onnx.ModelProto,
    found: Mapping[str, Noise],
    changed: set[str],
    inside: Mapping[str, tuple[str, ...]],
    makers: Mapping[str, str],
) -> Iterable[NodeError]:
    reaching: dict[str, float] = {}
    hidden: dict[str, tuple[str, ...]] = {}
    for node in model.graph.node:
        behind = tuple(dict.fromkeys(each for name in node.input for each in hidden.get(name, ())))
        before = max((reaching.get(name, 0.0) for name in node.input), default=0.0)
        outputs = [found[name] for name in node.output if name in found]
        for name in node.output:
            reaching[name] = found[name].ratio if name in found else before
        if not outputs:
            own = (node.name, *inside.get(node.name, ())) if node.name in changed else ()
            hidden |= dict.fromkeys(node.output, (*behind, *own))
            continue
        worst = max(outputs, key=lambda each: each.ratio)
        touched = [found[name].largest for name in (*node.input, *node.output) if name in found]
        yield NodeError(
            name=node.name,
            op_type=node.op_type,
            before=before,
            after=worst.ratio,
            cosine=worst.cosine,
            lost=worst.lost,
            largest=max(touched),
            changed=node.name in changed or worst.dtype == "float16",
            behind=behind,
            now=makers.get(node.output[0], ""),
            bodies=sum(1 for _ in inner_nodes(node)),
            inside=inside.get(node.name, ()),
        )


@dataclass(slots=True)
class StageError:
    """Change in a model's outputs by one build step.

    Attributes:
        outputs: Output -> its error over all points.
        points: Point -> the greatest noise-to-signal ratio of its outputs.
        cosine_min: Least cosine similarity of a float output at a point.
        equal_min: Least share of equal elements of an exact output at a point; None without any.
        failure: ONNX Runtime's error, if a model did not run; the points from there on are missing.
    """

    outputs: dict[str, Noise] = field(default_factory=dict)
    points: dict[str, float] = field(default_factory=dict)
    cosine_min: float = 1.0
    equal_min: float | None = None
    failure: str = ""

    @property
    def has_elements(self) -> bool:
        """Whether any element of an output was compared."""
        return any(each.elements for each in self.outputs.values())

    @property
    def has_floats(self) -> bool:
        """Whether any element of a float output was compared: `max_abs` and `cosine_min` are of those."""
        return any(each.elements and not each.exact for each in self.outputs.values())

    @property
    def max_abs(self) -> float:
        """Largest absolute difference over all float outputs."""
        floats = (each for each in self.outputs.values() if not each.exact)
        return max((each.max_abs for each in floats), default=0.0)

    @property
    def ratio(self) -> float:
        """Noise to signal of the worst output; infinite where a model did not run."""
        ratios = [each.ratio for each in self.outputs.values()]
        return float("inf") if self.failure else max(ratios, default=0.0)

    @property
    def lost(self) -> str:
        """Failure to run, and values that can't be compared, by output; empty if there are none."""
        found = [f"{name}: {each.lost}" for name, each in self.outputs.items() if each.lost]
        return "; ".join([self.failure, *found] if self.failure else found)


def stage_error(
    before: Path | None,
    after: Path,
    reference: Path,
    *,
    target: Target = CPU_TARGET,
    as_written: bool = False,
) -> StageError:
    """Compare two models at every reference point, one point in memory at a time.

    Args:
        before: Folder of the model before the step; None for the reference.
        after: Folder of the model after it.
        reference: Folder of the reference artifact.
        target: Target that both run on.
        as_written: Run the model after the step node by node, without ONNX Runtime's optimizations.

    Raises:
        StepError: A model can't be opened.
    """
    found = StageError()
    old = None if before is None else open_session(before, target=target)
    new = open_session(after, target=target, optimize=not as_written)
    try:
        for point, expected, actual in _pairs(old, new, reference):
            here = 0.0
            for name in expected:
                if name not in actual:
                    continue
                here = max(here, _add(found, name, expected[name], actual[name]))
            found.points[point.name] = here
    except StepError as error:
        found.failure = error.what
    return found


def _add(found: StageError, name: str, expected: np.ndarray, actual: np.ndarray) -> float:
    """Take in an output at a point; returns its noise-to-signal ratio there."""
    alone, whole = Noise(), found.outputs.setdefault(name, Noise())
    for each in (alone, whole):
        each.add(expected, actual)
    if alone.exact:
        share = 0.0 if alone.mismatch else 1.0 - alone.ratio
        found.equal_min = min(share, 1.0 if found.equal_min is None else found.equal_min)
    elif alone.elements:
        found.cosine_min = min(found.cosine_min, alone.cosine)
    return alone.ratio


def _pairs(
    old: onnxruntime.InferenceSession | None, new: onnxruntime.InferenceSession, reference: Path
) -> Iterator[tuple[ReferencePoint, Mapping[str, np.ndarray], Mapping[str, np.ndarray]]]:
    for point in read_reference(reference):
        expected = point.outputs if old is None else run_session(old, point.feeds)
        yield point, expected, run_session(new, point.feeds)
