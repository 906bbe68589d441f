"""Losses of a gated model's outputs: which nodes and blocks are measured, and each set of gates once."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from typing import Protocol

from onnxbuild.core.step import REPORT_FILE, StepContext
from onnxbuild.onnxkit.accuracy.divergence import log_softmax
from onnxbuild.onnxkit.accuracy.sample_outputs import (
    Fidelity,
    Projection,
    compare_vectors,
    noise_of,
    output_vectors,
)
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.frameworks import np, onnxruntime
from onnxbuild.onnxkit.host.progress import counted
from onnxbuild.onnxkit.model.blocks import Block, merged_blocks
from onnxbuild.onnxkit.sensitivity.dynamic_rounding import GATES, gates_open
from onnxbuild.onnxkit.sessions.run import run_session

Outputs = Sequence[dict[str, "np.ndarray"]]


@dataclass(frozen=True, slots=True)
class Loss:
    """Loss of the outputs with some nodes in few bits.

    Attributes:
        fidelity: How near the outputs are to the exact ones; None where only the score counts.
        score: The user's metric, where it is asked for.
        drop: How far that is below the exact model's.
        by_noise: Each sample is one number, whose cosine is 1 or -1 however large the error is.
    """

    fidelity: Fidelity | None
    score: float | None = None
    drop: float | None = None
    by_noise: bool = False

    @property
    def rank(self) -> tuple[float, float]:
        """Sort key, greatest loss first: by the metric's drop if there is one, then by cosine, or by noise."""
        return (-(self.drop or 0.0), -self._distance)

    @property
    def size(self) -> float:
        """Size of the loss, which ranks it: the drop, 1 - mean cosine, or noise to signal; greater is worse."""
        return self._distance if self.drop is None else self.drop

    @property
    def _distance(self) -> float:
        """1 - mean cosine, or noise to signal, as energies; 0 where outputs are not compared."""
        if self.fidelity is None:
            return 0.0
        if self.by_noise:
            return noise_of(self.fidelity.sqnr_db)
        return 1 - self.fidelity.cosine_mean

    def as_json(self) -> dict[str, object]:
        """cosine_mean, cosine_min, worst, sqnr_db, where outputs are compared, and score and drop where there are such."""
        found: dict[str, object] = {}
        if self.fidelity is not None:
            measures = asdict(self.fidelity)
            found = {
                key: measures[key] for key in ("cosine_mean", "cosine_min", "worst", "sqnr_db")
            }
        if self.drop is not None:
            found |= {"score": self.score, "drop": self.drop}
        return found


class LogitsDivergence:
    """Score of logits: minus the mean KL divergence, in nats, from those of the first call, the exact model's.

    Args:
        logits: Name of the output, shape (batch, sequence, vocabulary).
    """

    def __init__(self, logits: str) -> None:
        self._logits = logits
        self._exact: list[np.ndarray] = []

    def __call__(self, outputs: Outputs) -> float:
        """The score of the outputs of all feeds."""
        found = [log_softmax(each[self._logits]) for each in outputs]
        self._exact = self._exact or found
        rows = [
            (np.exp(theirs) * (theirs - own)).sum(-1).ravel()
            for theirs, own in zip(self._exact, found, strict=True)
        ]
        return -float(np.concatenate(rows).mean())


class Gated(Protocol):
    """A model with gates, on all samples."""

    @property
    def items(self) -> int:
        """Number of runs of the model for a set of gates."""
        ...

    def run(self, gates: np.ndarray) -> tuple[list[np.ndarray], float | None]:
        """Return the vectors of all samples, none where outputs are not compared, and the score, None without one."""
        ...


class GatedModel:
    """A gated model on feeds.

    Args:
        feeds: Checked; all are run for each set of gates.
        project: The user's, or None.
        target: Its name, for messages.
        score: The outputs of all feeds -> the user's metric; None to do without.
        where: `recipe:step`, for messages.
    """

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        feeds: Sequence[Feeds],
        *,
        project: Projection | None,
        target: str,
        score: Callable[[Outputs], float] | None,
        where: str,
    ) -> None:
        self._session = session
        self._feeds = feeds
        self._project = project
        self._target = target
        self._score = score
        self._where = where

    @property
    def items(self) -> int:
        """See Gated."""
        return len(self._feeds)

    def run(self, gates: np.ndarray) -> tuple[list[np.ndarray], float | None]:
        """See Gated."""
        vectors: list[np.ndarray] = []
        kept: list[dict[str, np.ndarray]] = []
        for number, item in enumerate(self._feeds):
            outputs = run_session(self._session, {**item, GATES: gates}, self._where)
            if self._score is not None:
                kept.append(_copied(outputs))
            samples = output_vectors(
                outputs,
                _copied(item),
                number,
                project=self._project,
                target=self._target,
                where=self._where,
            )
            vectors += [each.vector for each in samples]
        return vectors, None if self._score is None else self._score(kept)


class GatedLosses:
    """Measures sets of gates.

    Args:
        count: How many gates there are.
        where: `recipe:step`, for messages.

    Attributes:
        runs: How often the model was run.
        score: The exact model's.
        by_noise: See Loss.
    """

    def __init__(self, gated: Gated, count: int, where: str) -> None:
        self._gated = gated
        self._count = count
        self._where = where
        self._found: dict[frozenset[int], Loss] = {}
        self.runs = 0
        exact, self.score = self._run(())
        self._exact: list[np.ndarray] = exact
        self.by_noise = bool(exact) and all(each.size <= 1 for each in exact)

    @property
    def samples(self) -> int:
        """Number of samples that were compared."""
        return len(self._exact) or self._gated.items

    def of(self, opened: Collection[int]) -> Loss:
        """Return the loss with these gates open together.

        Raises:
            StepError: The outputs are not finite, or the metric gives no number.
        """
        key = frozenset(opened)
        if key not in self._found:
            vectors, score = self._run(key)
            fidelity = compare_vectors(self._exact, vectors, self._where) if vectors else None
            drop = None if score is None or self.score is None else self.score - score
            self._found[key] = Loss(fidelity, score, drop, self.by_noise)
        return self._found[key]

    def _run(self, opened: Collection[int]) -> tuple[list[np.ndarray], float | None]:
        self.runs += self._gated.items
        return self._gated.run(gates_open(self._count, opened))


def _copied(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return arrays that a projection may change: the feeds are run again, and the metric gets the outputs."""
    return {name: each.copy() for name, each in arrays.items()}


Measure = Callable[[Sequence[int]], Loss]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The greatest loss first.

    Attributes:
        blocks: Each with what all its nodes do together.
        nodes: (number, its block, what it does alone); None for those that were not measured alone,
            which come last, in their blocks' order.
    """

    blocks: tuple[tuple[Block, Loss], ...]
    nodes: tuple[tuple[int, Block, Loss | None], ...]


def rank(
    measure: Measure, blocks: Sequence[Block], names: Sequence[str], settings: int
) -> Ranking:
    """Measure blocks and nodes with at most `settings` measurements.

    Where blocks and nodes together are more, the blocks are measured first (neighbours put together
    until they take half of the measurements at most), then the nodes of the worst blocks, whole
    blocks at a time; the very worst is measured in part if it is too large.

    Args:
        measure: Numbers of nodes -> what they do together; a set that was measured costs nothing.
        blocks: All nodes, each once.
        settings: At least 2.
    """
    several = [each for each in blocks if len(each.nodes) > 1]
    count = len(names)
    whole = count + len(several) <= settings
    size = 1
    while not whole and len(blocks) > max(1, settings // 2):
        size *= 2
        blocks = merged_blocks(blocks, names, size)
    measured = [(block, measure(block.nodes)) for block in counted(blocks, "blocks", len(blocks))]
    measured.sort(key=lambda pair: (pair[1].rank, pair[0].nodes))
    room = count if whole else settings - len(blocks)
    alone: list[tuple[int, Block, Loss | None]] = []
    rest: list[tuple[int, Block, Loss | None]] = []
    for number, block in counted(_taken(measured, room), "nodes", min(room, count)):
        alone.append((number, block, measure((number,))))
    taken = {number for number, _, _ in alone}
    alone.sort(key=lambda each: (each[2].rank if each[2] else (), names[each[0]]))
    rest = [(n, block, None) for block, _ in measured for n in block.nodes if n not in taken]
    return Ranking(tuple(measured), (*alone, *rest))


def _taken(measured: Sequence[tuple[Block, Loss]], room: int) -> Iterator[tuple[int, Block]]:
    """The nodes to measure alone: those of the worst blocks, as long as there is room."""
    first = True
    for block, _ in measured:
        cost = len(block.nodes) if len(block.nodes) > 1 else 0  # one node is the block's own loss
        if cost > room and not first:
            return
        for number in block.nodes[:room] if cost > room else block.nodes:
            yield number, block
        room -= cost
        first = False


def most_sensitive(context: StepContext, share: float) -> list[str]:
    """Names of the nodes to keep, the most sensitive first; none without the input `sensitivity`.

    Args:
        share: Of all nodes in the report that multiply or compute, 0 to 1, rounded up; below 1 it
            leaves one to quantize, or no small model would get through a search's ladder. Looked-up
            tables don't count: a large one in fp32 costs more bytes than all else saves.
    """
    if "sensitivity" not in context.input_names:
        return []
    report = json.loads((context.input("sensitivity") / REPORT_FILE).read_text("utf-8"))
    nodes = [str(each["name"]) for each in report["nodes"] if each.get("op_type") != "Gather"]
    count = math.ceil(round(share * len(nodes), 9))  # 0.07 * 100 is a little more than 7
    return nodes[: min(count, len(nodes) - 1) if share < 1 else count]


def most_lossy(
    context: StepContext, share: float, sizes: Mapping[str, int], tied: Mapping[str, str]
) -> list[str]:
    """Names of the nodes whose weights lose most for their size, up to a share of all weights; none without `sensitivity`.

    Args:
        share: 0 to 1.
        sizes: Name -> number of weights.
        tied: Name of another node in the report -> the node of `sizes` whose weights it reads, which loses for both.
    """
    if "sensitivity" not in context.input_names:
        return []
    report = json.loads((context.input("sensitivity") / REPORT_FILE).read_text("utf-8"))
    losses: dict[str, float] = defaultdict(float)
    for each in filter(itemgetter("measured"), report["nodes"]):
        loss = each["drop"] if "drop" in each else noise_of(each["sqnr_db"])
        losses[tied.get(each["name"], each["name"])] += loss
    ranked = sorted(sizes, key=lambda name: (-losses[name] / sizes[name], name))
    found, left = [], share * sum(sizes.values())
    for name in ranked:
        if sizes[name] <= left:
            found.append(name)
            left -= sizes[name]
    return found
