"""Channels of an MLP that reach far beyond the others, taken out of its matrices in fp32.

y = act(x W1 + b1) W2 becomes the same with the columns I of W1, b1 and the rows I of W2 set to zero
(act(0) = 0), plus act(x W1[:, I] + b1[I]) W2[I, :]. Where an activation and a third matrix follow, W2 is
the first matrix of another MLP, whose branch reads from this branch, too. One such channel sets the scale at
which all others of act's output are rounded (Dettmers et al., LLM.int8(), arXiv:2208.07339, section 3, for
whole inputs; here the branch holds a few channels of the hidden layer, and costs next to nothing).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.graphs import insert_nodes
from onnxbuild.onnxkit.model.linear_nodes import BRANCH_PREFIX, Constants
from onnxbuild.onnxkit.model.mlp_topology import Mlp, find_mlps

if TYPE_CHECKING:
    import numpy as np
    import onnx

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
        model: Weights loaded.
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
    import numpy as np

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
        constants: The graph's.
        mlp: Of the graph.
        channels: Of its hidden layer.
        prefix: Of the names of all that is made.
        earlier: The MatMul that carries outliers past the MLP's first matrix, if there is one.

    Returns: The nodes that carry the channels; the last two are a MatMul and the Add of its product.
    """
    import onnx
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
