"""Error that each changed node alone causes in a model's outputs, and the one node that causes most of it."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.core.target import CPU_TARGET, Target
from onnxbuild.onnxkit.accuracy.comparison import Noise
from onnxbuild.onnxkit.accuracy.node_trace import changed_nodes, dequantized
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.model.graphs import names_read
from onnxbuild.onnxkit.model.model_files import hand_on, load_model, model_path
from onnxbuild.onnxkit.model.node_patterns import NODES_OPTION
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session

_FLOAT = 1
"""TensorProto.FLOAT."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """The part of the other model that makes one value.

    Attributes:
        node: Name of the node that makes the value in the exact model.
        output: Name of the value in the exact model.
        inputs: Input of the part -> the value of the exact model that it takes.
        model: The part.
    """

    node: str
    output: str
    inputs: dict[str, str]
    model: onnx.ModelProto


def output_effects(
    expected: Path,
    actual: Path,
    nodes: Collection[str],
    feeds: Feeds,
    *,
    target: Target = CPU_TARGET,
) -> dict[str, float]:
    """Node -> noise to signal at the worst output when that node alone is as in `actual`.

    Two runs of `expected` a node, and one of the node; one node's values are held at a time. A node
    that can't be run by itself (it has other inputs than float32 tensors of both models) is left
    out.

    Args:
        expected: Folder of the exact model; files are written into it.
        actual: Folder of the other, likewise.
        nodes: Names of nodes of `expected`.
        feeds: The inputs, one item.
        target: Target that both models run on.

    Raises:
        StepError: A model can't be opened, or the exact one does not run.
    """
    exact, other = (load_model(each, weights="left") for each in (expected, actual))
    shared = _float_values(exact) & _float_values(other)
    cuts = list(_cuts(exact, other, nodes, shared))
    if not cuts:
        return {}
    outputs = [value.name for value in exact.graph.output]
    wanted = list(
        dict.fromkeys([name for cut in cuts for name in (cut.output, *cut.inputs.values())])
    )
    _expose(exact, wanted, [cut.output for cut in cuts])
    path = model_path(expected).with_name("injected.onnx")
    path.write_bytes(exact.SerializeToString())
    session = open_session(path, target=target, threads=0)
    off: Feeds = {_error_of(cut.output): np.zeros(1, np.float32) for cut in cuts}
    right = run_session(session, {**feeds, **off}, outputs=outputs)
    found = {}
    for cut in cuts:
        held = run_session(session, {**feeds, **off}, outputs=_held(cut))
        taken = {name: held[value] for name, value in cut.inputs.items()}
        made = _run_alone(cut, {**feeds, **taken}, actual, target)
        if made is None or made.shape != held[cut.output].shape:
            continue
        error = {_error_of(cut.output): made.astype(np.float32) - held[cut.output]}
        wrong = run_session(session, {**feeds, **off, **error}, outputs=outputs)
        found[cut.node] = max(_noise(right[name], wrong[name]).ratio for name in outputs)
    return found


def _cuts(
    exact: onnx.ModelProto, other: onnx.ModelProto, nodes: Collection[str], shared: set[str]
) -> Iterator[_Cut]:
    makers = {name: n for n, node in enumerate(other.graph.node) for name in node.output if name}
    inputs = {value.name: value for value in other.graph.input}
    seen_as = dequantized(other)
    stands_for = {name: name for name in shared} | {
        low: name for name, low in seen_as.items() if name in shared
    }
    for node in exact.graph.node:
        output = node.output[0]
        if node.name not in nodes or output not in shared:
            continue
        taken: set[int] = set()
        ends: dict[str, None] = {}
        end = seen_as.get(output, output)
        stack, seen = [end], {end}
        while stack:
            name = stack.pop()
            if name in inputs or stands_for.get(name, output) != output:
                ends[name] = None
            elif name in makers:
                taken.add(makers[name])
                reads = names_read(other.graph.node[makers[name]]) - seen
                seen |= reads
                stack += sorted(reads)
        model = onnx.ModelProto(ir_version=other.ir_version)
        model.opset_import.extend(other.opset_import)
        model.functions.extend(other.functions)
        model.graph.name = "cut"
        model.graph.node.extend(other.graph.node[n] for n in sorted(taken))
        model.graph.initializer.extend(t for t in other.graph.initializer if t.name in seen)
        model.graph.input.extend(inputs[n] if n in inputs else _free(n) for n in ends)
        model.graph.output.append(onnx.ValueInfoProto(name=end))
        yield _Cut(node.name, output, {n: stands_for[n] for n in ends if n not in inputs}, model)


def _expose(model: onnx.ModelProto, wanted: list[str], errors: list[str]) -> None:
    """Make `wanted` outputs, and add an input to each of `errors`, in place."""
    have = {value.name for value in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in wanted if n not in have)
    added = set(errors)
    nodes = []
    for node in model.graph.node:
        nodes.append(node)
        for n, name in enumerate(node.output):
            if name in added:
                node.output[n] = f"{name}/exact"
                terms = [node.output[n], _error_of(name)]
                nodes.append(onnx.helper.make_node("Add", terms, [name]))
    graph = onnx.GraphProto()
    graph.CopyFrom(model.graph)
    del graph.node[:]
    graph.node.extend(nodes)
    graph.input.extend(_free(_error_of(name)) for name in errors)
    model.graph.CopyFrom(graph)


def _run_alone(cut: _Cut, values: Feeds, folder: Path, target: Target) -> np.ndarray | None:
    path = model_path(folder).with_name("cut.onnx")
    path.write_bytes(cut.model.SerializeToString())
    try:
        return run_session(open_session(path, target=target), values)[
            cut.model.graph.output[0].name
        ]
    except StepError:
        return None


def _float_values(model: onnx.ModelProto) -> set[str]:
    """The values of the main graph that are float32, as far as the model says so."""
    typed: Mapping[str, int] = {
        value.name: value.type.tensor_type.elem_type
        for field in (model.graph.value_info, model.graph.output)
        for value in field
    }
    made = {name for node in model.graph.node for name in node.output if name}
    return {name for name in made if typed.get(name, _FLOAT) == _FLOAT}


def _free(name: str) -> onnx.ValueInfoProto:
    """A float32 input of any shape."""
    return onnx.helper.make_tensor_value_info(name, _FLOAT, None)


def _held(cut: _Cut) -> list[str]:
    return list(dict.fromkeys([cut.output, *cut.inputs.values()]))


def _error_of(name: str) -> str:
    return f"{name}/error"


def _noise(expected: np.ndarray, actual: np.ndarray) -> Noise:
    noise = Noise()
    noise.add(expected, actual)
    return noise


_LEAST_NODES, _MOST_NODES, _HALF = 2, 128, 0.5
"""Bounds on the number of changed nodes, and the share of the error above which a node dominates. A single node has
no others to compare it with; many take minutes, at two runs each: use `onnxbuild diagnose` for them."""


@dataclass(frozen=True, slots=True)
class DominantNode:
    """A node that alone brings in more noise than all others together.

    Attributes:
        name: The node's, in the fp32 model.
        op_type: Its operator.
        share: Of the noise in the outputs, above 0.5 and at most 1.
        readers: Nodes that read its output and have it quantized, too, as long as they are themselves.
    """

    name: str
    op_type: str
    share: float
    readers: tuple[str, ...] = ()

    def note(self, variant: str, cosine: float, excluded: Sequence[str]) -> str:
        """One line for the run's output, with the YAML to write.

        Args:
            cosine: The worst of its outputs.
            excluded: Nodes that its `nodes_to_exclude` names already.
        """
        wanted = dict.fromkeys([*excluded, self.name, *self.readers])
        names = json.dumps(list(wanted), ensure_ascii=False)
        what = "it and what reads it" if self.readers else "it"
        return (
            f"{self.op_type} node '{self.name}' alone makes {100 * min(self.share, 0.999):.3g} % of "
            f"the error of variant '{variant}' (worst cosine {cosine:.4f}): leave {what} in fp32 with "
            f"`{NODES_OPTION}: {names}`"
        )


def find_dominant_node(
    exact: Path, actual: Path, feeds: Feeds, scratch: Path
) -> DominantNode | None:
    """Put each changed node alone into the exact model and see what that does to the outputs.

    One dominates if it does more than the others together: than their own effects, added up, and than
    the rest of the quantized model's error.

    Args:
        exact: Folder of the fp32 model.
        actual: Folder of what a quantizer made of it.
        scratch: A folder to work in.

    Returns: None if no node outweighs the others, if nodes can't be run by themselves, or if they are too many.
    """
    exact, actual = _linked(exact, scratch / "exact"), _linked(actual, scratch / "actual")
    model = load_model(exact, weights="left")
    other = load_model(actual, weights="left")
    changed = changed_nodes(exact, actual)
    if not _LEAST_NODES <= len(changed) <= _MOST_NODES:
        return None
    try:
        whole = _whole_noise(exact, actual, feeds)
        effects = output_effects(exact, actual, changed, feeds)
    except StepError:  # an aid: the gates have judged the model by themselves
        return None
    if not effects:
        return None
    name = max(effects, key=lambda each: effects[each])
    share = _share(effects.pop(name), whole, effects.values())
    if not share > _HALF:
        return None
    node = next(each for each in model.graph.node if each.name == name)
    low = set(node.output) & dequantized(other).keys()  # a static variant's activations
    readers = tuple(each.name for each in model.graph.node if low & set(each.input))
    return DominantNode(name, node.op_type, share, readers)


def _whole_noise(exact: Path, actual: Path, feeds: Feeds) -> float:
    """Noise to signal of the quantized model's worst output."""
    right, wrong = (run_session(open_session(each, threads=0), feeds) for each in (exact, actual))
    shared = right.keys() & wrong.keys()
    return max((_noise(right[name], wrong[name]).ratio for name in shared), default=0.0)


def _share(effect: float, whole: float, others: Iterable[float]) -> float:
    """Return the share of the error that one node causes, 0 to 1.

    Args:
        effect: Noise to signal with this node alone changed.
        whole: Noise to signal with all nodes changed.
        others: Noise to signal with each of the other nodes alone changed.
    """
    if math.isinf(effect):
        return 0.0 if any(map(math.isinf, others)) else 1.0
    rest = max(math.fsum(others), whole - effect)
    return effect / (effect + rest) if effect > 0.0 else 0.0


def _linked(source: Path, target: Path) -> Path:
    """A folder with the model's files that can be written into."""
    target.mkdir()
    for file in sorted(source.iterdir()):
        hand_on(file, target / file.name)
    return target
