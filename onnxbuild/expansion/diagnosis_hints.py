"""Hints of a feature for `diagnose`: the steps that find errors in a variant's outputs, and what mends them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onnxbuild.core.recipe import Recipe


@dataclass(frozen=True, slots=True)
class KeptNodes:
    """Option of a mode that leaves single nodes in fp32.

    Attributes:
        kind: The step kind that leaves them; its input `model` has all of them in fp32.
        option: The mode's option that lists them by name.
        alone: The variant's values are fp32 at both ends of a node, so that each node can be run alone
            and its effect on the outputs measured.
        largest: The largest magnitude that the variant's values can have. Nodes that exceed it are
            kept first, and together.
    """

    kind: str
    option: str = "nodes_to_exclude"
    alone: bool = True
    largest: float = math.inf


@dataclass(frozen=True, slots=True)
class Milder:
    """Options with which a step does less, where it brings an error in.

    Attributes:
        kind: The step kind.
        section: The section of its options: the recipe's, or the variant's own over it.
        changes: Options to change, each change doing less than the one before.
    """

    kind: str
    section: str
    changes: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class NodeLosses:
    """A report on what few bits in each node cost on the user's data, laid next to a variant.

    Attributes:
        kind: The step kind; its report lists `nodes`, each with `name`, `measured`, and `drop` or
            `cosine_mean`.
        settings: Settings that ask for the report, as `--set` takes them.
        of_whole: Settings with which it is what they cost a component's pipeline.
        can_rank: Whether a recipe says by what its nodes are ranked.
        in_whole: Whether a recipe is a component of a pipeline that can measure what its nodes cost.
        by_gate: Whether nodes are ranked by what a gate of the recipe judges.
    """

    kind: str
    settings: Mapping[str, str]
    of_whole: Mapping[str, str]
    can_rank: Callable[[Recipe], bool]
    in_whole: Callable[[Recipe], bool]
    by_gate: Callable[[Recipe], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisHints:
    """Facts about a feature's steps that `diagnose` needs.

    Attributes:
        judges: Step kinds that fail a variant for its outputs, on their param `target` if they have one.
        compares: Those that compare its outputs with the reference's: they have inputs `model` and
            `reference`, and the param `target`. They judge, too.
        answers: Bound of a search's goal -> the step of a variant whose report shows where it stands.
        milder: How steps can do less.
        losses: What the nodes of a variant are ranked by where it misses the goal of a search.
        as_written: Section -> options with which ONNX Runtime runs a model without changing it.
        allows: (precision, greatest difference) -> section -> options that allow that much.
        advice: Step kind -> lines to print if it brings an error in and nothing can be tried.
    """

    judges: tuple[str, ...] = ()
    compares: tuple[str, ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    milder: tuple[Milder, ...] = ()
    losses: NodeLosses | None = None
    as_written: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    allows: Callable[[str, float], Mapping[str, Mapping[str, Any]]] = lambda *_: {}
    advice: Mapping[str, Sequence[str]] = field(default_factory=dict)
