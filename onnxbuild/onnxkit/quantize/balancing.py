"""Activations made fit for 8 bits: channels scaled to like sizes, and outlier channels taken out in fp32."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.model.graphs import insert_nodes
from onnxbuild.onnxkit.model.linear_nodes import (
    BRANCH_PREFIX,
    Constants,
    LinearNode,
    Mlp,
    by_activation,
    find_mlps,
    linear_nodes,
)

_NORMALIZATIONS = {
    "LayerNormalization": (1, 2),
    "SimplifiedLayerNormalization": (1,),
    "RMSNormalization": (1,),
    "SkipLayerNormalization": (2, 3),
    "SkipSimplifiedLayerNormalization": (2,),
    "EmbedLayerNormalization": (5, 6),
}
"""Operator -> which inputs scale and shift its first output by channel."""

_ALPHA = 0.8
"""SmoothQuant's share of the difficulty that goes to the weights. Its 0.5 suits one scale a matrix;
with one an output, 0.8 loses half as much on MiniLM, and 0.7 to 0.9 nearly the same."""

_LEAST = 1e-3
"""Least size of a channel, as a share of the greatest, so that a silent one is not blown up."""


_SMALLEST = 1e-30
"""An output that is zero everywhere is compared with this."""


@dataclass(frozen=True, slots=True)
class Balanced:
    """A value whose channels were scaled.

    Attributes:
        value: Its name.
        nodes: The multiplications that read it scaled, in the graph's order.
        spread_before: Its farthest channel, in medians of channels.
        spread_after: The same once scaled.
    """

    value: str
    nodes: tuple[str, ...]
    spread_before: float
    spread_after: float


def normalized_values(model: onnx.ModelProto) -> list[str]:
    """The values that could be balanced: a normalization makes them, multiplications read them."""
    return list(_groups(model))


def balance_values(model: onnx.ModelProto, peaks: Mapping[str, np.ndarray]) -> list[Balanced]:
    """Scale each of `normalized_values` once, for all multiplications that read it, in place.

    What else reads it still reads it as it was, behind a Mul; where nothing else does, the
    normalization scales it at no cost.

    Args:
        peaks: Value name -> greatest magnitude by channel.
    """
    from onnx import helper

    constants = Constants(model)
    places = {name: n for n, node in enumerate(model.graph.node) for name in node.output}
    sources = _Sources(model, constants)
    inserted: dict[int, list[onnx.NodeProto]] = {}
    found = []
    for number, (value, linears) in enumerate(_groups(model).items()):
        peak = peaks[value]
        if not peak.any():
            continue
        matrices = [constants.matrix(each) for each in linears]
        weight = np.max([np.abs(each).max(axis=1) for each in matrices], axis=0)
        divisor = divisors(peak, weight)
        for linear, matrix in zip(linears, matrices, strict=True):
            constants.replace_matrix(linear, matrix * divisor[:, None])
        prefix = f"onnxbuild/balance/{number}"
        if not sources.scale(value, len(linears), divisor):
            factor = constants.add(f"{prefix}/factor", 1 / divisor)
            for linear in linears:
                linear.node.input[0] = f"{prefix}/value"
            node = helper.make_node("Mul", [value, factor], [f"{prefix}/value"], prefix)
            inserted.setdefault(places[linears[0].node.output[0]], []).append(node)
        names = tuple(each.node.name for each in linears)
        found.append(Balanced(value, names, _spread(peak), _spread(peak / divisor)))
    insert_nodes(model.graph, inserted)
    return found


class _Sources:
    """The nodes that make the values of a graph, those that normalize them in particular.

    Args:
        model: Changed in place by `scale`.
    """

    def __init__(self, model: onnx.ModelProto, constants: Constants) -> None:
        self._constants = constants
        self._branches = by_activation(linear_nodes(model, branches=True))
        self._maker = {node.output[0]: node for node in model.graph.node if node.output}

    def scale(self, value: str, readers: int, divisor: np.ndarray) -> bool:
        """Let the normalization itself divide, where nothing else reads what it makes.

        Args:
            readers: Multiplications whose matrices are scaled already.

        Returns: Whether it was possible; if not, nothing is changed.
        """
        constants = self._constants
        branches = self._branches.get(value, [])
        source = self._maker[value]
        if source.op_type == "Reshape":
            if constants.reads(source.input[0]) != 1:
                return False
            source = self._maker[source.input[0]]
        places = [n for n in _NORMALIZATIONS[source.op_type] if n < len(source.input)]
        places = [n for n in places if source.input[n]]
        if constants.reads(value) != readers + len(branches):
            return False
        if not places or not all(source.input[n] in constants for n in places):
            return False
        if any(constants.read(source.input[n]).shape != divisor.shape for n in places):
            return False
        for n in places:
            constants.replace(source, n, constants.read(source.input[n]) / divisor)
        for branch in branches:
            constants.replace_matrix(branch, constants.matrix(branch) * divisor[:, None])
        return True


def divisors(peak: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return each channel's divisor: peak^alpha / weight^(1 - alpha), geometric mean 1; float32.

    Args:
        peak: Greatest magnitude of each channel; one at least is above 0.
        weight: Greatest magnitude of the weights that it is multiplied with.
    """
    wide = [np.asarray(each, np.float64) for each in (peak, weight)]
    a, w = (np.maximum(each, _LEAST * each.max()) for each in wide)
    w = np.where(w > 0, w, 1.0)
    found = a**_ALPHA / w ** (1 - _ALPHA)
    balanced: np.ndarray = (found / np.exp(np.log(found).mean())).astype(np.float32)
    return balanced


def relative_error(expected: Mapping[str, np.ndarray], actual: Mapping[str, np.ndarray]) -> float:
    """The greatest difference of an output, relative to its greatest finite magnitude.

    Args:
        expected: Output name -> array; only floats are compared.
        actual: The same names and shapes.

    Returns: A value >= 0; infinity where one side alone is infinite or NaN.
    """
    most = 0.0
    for name, array in expected.items():
        if array.dtype.kind != "f" or not array.size:
            continue
        one: np.ndarray = array.astype(np.float64)
        other: np.ndarray = actual[name].astype(np.float64)
        differs = (one != other) & ~(np.isnan(one) & np.isnan(other))
        finite = np.isfinite(one) & np.isfinite(other)
        if (differs & ~finite).any():
            return float("inf")
        sizes = np.abs(np.where(finite, one, 0.0))
        error = np.abs(np.where(differs, one, 0.0) - np.where(differs, other, 0.0)).max()
        most = max(most, float(error) / max(float(sizes.max()), _SMALLEST))
    return most


def _groups(model: onnx.ModelProto) -> dict[str, list[LinearNode]]:
    """Value -> the multiplications that read it, where a normalization makes it.

    A Reshape may stand between the two where it leaves the channels as they are.
    """
    graph = model.graph
    maker = {node.output[0]: node for node in graph.node if node.output}
    lengths = {each.name: tuple(each.dims) for each in graph.initializer}
    found = {}
    for value, linears in by_activation(linear_nodes(model)).items():
        source = maker.get(value)
        reshaped = source is not None and source.op_type == "Reshape"
        if source is not None and reshaped:
            source = maker.get(source.input[0])
        if source is None or source.op_type not in _NORMALIZATIONS:
            continue
        scale = source.input[_NORMALIZATIONS[source.op_type][0]]
        if not reshaped or lengths.get(scale) == (linears[0].channels,):
            found[value] = linears
    return found


def _spread(peak: np.ndarray) -> float:
    middle = float(np.median(peak))
    return float(f"{float(peak.max()) / middle:.4g}") if middle > 0 else 0.0


_TIMES = 2.0
_RANK = 9
_MOST = 8
"""An outlier reaches `_TIMES` the `_RANK`th farthest channel; a layer has `_MOST` of them at most.
On MiniLM 1 to 8 channels of each MLP do, the others are close together."""


@dataclass(frozen=True, slots=True)
class Branch:
    """Channels that were taken out.

    Attributes:
        node: Name of the matrix multiplication that reads them.
        channels: Their places, rising.
        limit: The greatest magnitude of those that stay.
    """

    node: str
    channels: tuple[int, ...]
    limit: float


def hidden_values(model: onnx.ModelProto) -> list[str]:
    """The activations' outputs whose outliers could be taken out, in the graph's order."""
    return [each.down.activation for each in find_mlps(model)]


def branch_outliers(model: onnx.ModelProto, peaks: Mapping[str, np.ndarray]) -> list[Branch]:
    """Take outlier channels out, in place.

    Args:
        peaks: Value name -> greatest magnitude by channel, for all of `hidden_values`.
    """
    constants = Constants(model)
    places = {name: n for n, node in enumerate(model.graph.node) for name in node.output}
    inserted: dict[int, list[onnx.NodeProto]] = {}
    earlier: dict[str, onnx.NodeProto] = {}
    found = []
    for number, mlp in enumerate(find_mlps(model)):
        peak = peaks[mlp.down.activation]
        channels = outliers(peak)
        if not channels:
            continue
        behind = places[mlp.down.node.output[0]] + 1
        before = earlier.get(mlp.up.node.name)
        nodes = _branch(constants, mlp, channels, f"{BRANCH_PREFIX}{number}", before)
        inserted[behind] = nodes
        earlier[mlp.down.node.name] = nodes[-2]
        stay = [float(each) for n, each in enumerate(peak) if n not in channels]
        found.append(Branch(mlp.down.node.name, channels, max(stay)))
    insert_nodes(model.graph, inserted)
    return found


def outliers(peak: np.ndarray) -> tuple[int, ...]:
    """The channels that reach far beyond the others, rising; none where there are few channels."""
    if len(peak) <= _RANK:
        return ()
    order = np.argsort(-peak, kind="stable")
    limit = _TIMES * float(peak[order[_RANK - 1]])
    return tuple(sorted(int(n) for n in order[:_MOST] if float(peak[n]) > limit))


def _branch(
    constants: Constants,
    mlp: Mlp,
    channels: tuple[int, ...],
    prefix: str,
    earlier: onnx.NodeProto | None,
) -> list[onnx.NodeProto]:
    """Take channels out of an MLP's constants, in place.

    Args:
        channels: Of its hidden layer.
        prefix: Of the names of all that is made.
        earlier: The MatMul that carries outliers past the MLP's first matrix, if there is one.

    Returns: The nodes that carry the channels; the last two are a MatMul and the Add of its product.
    """
    from onnx import helper

    picked = list(channels)
    up, down = constants.matrix(mlp.up), constants.matrix(mlp.down)
    part_up = constants.add(f"{prefix}/up/weight", up[:, picked])
    part_down = constants.add(f"{prefix}/down/weight", down[picked])
    up[:, picked], down[picked] = 0, 0
    constants.replace_matrix(mlp.up, up)
    constants.replace_matrix(mlp.down, down)
    value = f"{prefix}/up"
    nodes = [helper.make_node("MatMul", [mlp.up.activation, part_up], [value], value)]
    if earlier is not None:
        passed = constants.read(earlier.input[1])
        part = constants.add(f"{prefix}/earlier/weight", passed[:, picked])
        passed[:, picked] = 0
        constants.replace(earlier, 1, passed)
        product, value = f"{prefix}/earlier", f"{prefix}/both"
        nodes.append(helper.make_node("MatMul", [earlier.input[0], part], [product], product))
        nodes.append(helper.make_node("Add", [nodes[0].output[0], product], [value], value))
    if mlp.bias is not None:
        holder, place = mlp.bias
        bias = constants.read(holder.input[place])
        part = constants.add(f"{prefix}/bias/constant", bias[picked])
        bias[picked] = 0
        constants.replace(holder, place, bias)
        nodes.append(helper.make_node("Add", [value, part], [f"{prefix}/bias"], f"{prefix}/bias"))
        value = f"{prefix}/bias"
    renamed = {mlp.activation[0].input[0]: value}
    for number, node in enumerate(mlp.activation):
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.name = f"{prefix}/activation/{number}"
        copy.op_type = "Gelu" if node.op_type == "BiasGelu" else node.op_type
        del copy.input[:], copy.output[:]
        copy.input.extend(renamed[name] for name in node.input if name in renamed)
        copy.output.append(copy.name)
        renamed[node.output[0]] = value = copy.name
        nodes.append(copy)
    nodes.append(
        helper.make_node("MatMul", [value, part_down], [f"{prefix}/down"], f"{prefix}/down")
    )
    output = mlp.down.node.output[0]
    mlp.down.node.output[0] = f"{prefix}/rest"
    nodes.append(
        helper.make_node("Add", [f"{prefix}/rest", f"{prefix}/down"], [output], f"{prefix}/sum")
    )
    return nodes
