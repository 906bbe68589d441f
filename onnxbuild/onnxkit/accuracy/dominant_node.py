"""The one node that costs a variant more than all others together, if there is one."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.accuracy.error_sums import Noise
from onnxbuild.onnxkit.accuracy.isolated_node_error import output_effects
from onnxbuild.onnxkit.accuracy.node_trace import changed_nodes, dequantized
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.model.model_files import hand_on, load_model
from onnxbuild.onnxkit.model.node_patterns import NODES_OPTION
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session

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
            variant: Its name.
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
        feeds: One item.
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
        whole = _noise(exact, actual, feeds)
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


def _noise(exact: Path, actual: Path, feeds: Feeds) -> float:
    """Noise to signal of the quantized model's worst output."""
    right, wrong = (run_session(open_session(each, threads=0), feeds) for each in (exact, actual))
    ratios = [0.0]
    for name in right.keys() & wrong.keys():
        noise = Noise()
        noise.add(right[name], wrong[name])
        ratios.append(noise.ratio)
    return max(ratios)


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
