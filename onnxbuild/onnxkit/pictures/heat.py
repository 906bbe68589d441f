"""Rate the sensitivity of nodes and blocks, from a sensitivity report: 1 for the worst."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.pictures.folding import FoldedBlock
from onnxbuild.onnxkit.pictures.nodes import GraphNode

SENSITIVITY_FILE = "sensitivity.json"
_QUANTIZED = re.compile(r"(_quant|_Q\d+|_quantized)$")
_NOTHING = 1e-7
_MEASURES = {"cosine_mean": "1 - mean cosine", "sqnr_db": "noise to signal"}


@dataclass(frozen=True, slots=True)
class Heat:
    """Losses by name.

    Attributes:
        nodes: A node's name in the model before it was quantized -> its loss alone.
        blocks: A module's path -> the loss of all its nodes together.
        measure: What was measured.
    """

    nodes: Mapping[str, float]
    blocks: Mapping[str, float]
    measure: str

    def __bool__(self) -> bool:
        """Return whether there is a report."""
        return bool(self.nodes or self.blocks)

    @property
    def most(self) -> float:
        """The greatest loss of one node."""
        return max([*self.nodes.values(), _NOTHING])

    def of(
        self, nodes: Iterable[GraphNode], content: FoldedBlock | GraphNode
    ) -> tuple[float, str] | None:
        """Return the share of the greatest loss, and that as a sentence; None where nothing was measured.

        A block is as warm as its warmest node.
        """
        found = {node.name: loss for node in nodes if (loss := self._loss(node.name)) is not None}
        if not found:
            return None
        worst = max(found, key=lambda name: (found[name], name))
        loss = found[worst]
        share = min(1.0, max(0.0, loss) / self.most)
        said = f"{self.measure} {loss:.3g}"
        if isinstance(content, FoldedBlock):
            said = f"most sensitive node {worst}: {said}"
            together = self.blocks.get(".".join(content.path))
            said += f"; the block together {together:.3g}" if together is not None else ""
        return share, said

    def _loss(self, name: str) -> float | None:
        loss = self.nodes.get(name)
        return self.nodes.get(_QUANTIZED.sub("", name)) if loss is None else loss


NO_HEAT = Heat({}, {}, "")
"""Heat of a model without a sensitivity report."""


def read_heat(path: Path) -> Heat:
    """Read a sensitivity report.

    Args:
        path: `sensitivity.json` of a variant.

    Raises:
        StepError: It is no such report.
    """
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        ranked = report["ranked_by"]
        nodes = {each["name"]: _size(each, ranked) for each in report["nodes"] if each["measured"]}
        blocks = {each["name"]: _size(each, ranked) for each in report["blocks"]}
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise StepError(
            f"{path.name} is not a sensitivity report: {error!r}",
            where=str(path),
            fix="build the variant again, or remove the file",
        ) from error
    return Heat(nodes, blocks, _MEASURES.get(ranked, f"drop of {ranked}"))


def _size(each: Mapping[str, float], ranked: str) -> float:
    if ranked == "sqnr_db":
        return 0.0 if each["sqnr_db"] is None else float(10 ** (-each["sqnr_db"] / 10))
    return each["drop"] if "drop" in each else 1 - each["cosine_mean"]
