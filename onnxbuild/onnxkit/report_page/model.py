"""Content of a report, as data: figures, verdicts, sections; independent of who gathered it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from onnxbuild.core.step import Finding
from onnxbuild.onnxkit.report_page.blocks import Block

State = Literal["passed", "failed", "skipped", "not run"]
Axis = Literal["quality", "speed", "size", ""]


@dataclass(frozen=True, slots=True)
class ReportSource:
    """A report that a step made.

    Attributes:
        form: Which function of `forms` shows it.
        bundle: The variant, or what is made of it; empty for a step that variants share.
        step: What the step does.
        target: Where it runs; empty for the first target.
        is_gate: Whether it judges the bundle.
        files: The report's files: name -> where the content is. None of a step without a result.
        findings: Breaches.
        why: Why it has no result.
    """

    form: str
    bundle: str
    step: str
    target: str = ""
    is_gate: bool = False
    files: Mapping[str, Path] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """Verdict of one gate on one bundle.

    Attributes:
        bundle: The variant.
        gate: The step.
        target: Where it ran; empty for the first target.
        state: Passed or not.
        figures: The figures that decide, as text.
        findings: Breaches.
        why: Why it was skipped, or did not run.
    """

    bundle: str
    gate: str
    target: str
    state: State
    figures: str = ""
    findings: tuple[Finding, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a bundle, to compare and to follow over time.

    Attributes:
        bundle: The variant.
        name: What it is, with its unit: `median latency, ms`.
        value: Finite.
        text: The value as people read it.
        axis: What it stands for in the comparison of quality, speed and size.
        is_better: Which values are.
        rank: Of several figures of one axis, the least rank is compared.
    """

    bundle: str
    name: str
    value: float
    text: str
    axis: Axis = ""
    is_better: Literal["less", "more"] = "less"
    rank: int = 9


@dataclass(frozen=True, slots=True)
class Part:
    """Content that the reports of one form add to the page.

    Attributes:
        section: Where its blocks go: a key of `compose.SECTIONS`.
        blocks: In this order.
        verdicts: For the table of verdicts.
        figures: For the comparison.
    """

    section: str
    blocks: tuple[Block, ...] = ()
    verdicts: tuple[GateVerdict, ...] = ()
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True, slots=True)
class PageSection:
    """Blocks below a heading."""

    key: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class VariantCard:
    """A variant in the first glance.

    Attributes:
        name: Its name.
        state: Of all its gates.
        why: One line where it is not `passed`.
        facts: (name, value) of the figures that decide.
    """

    name: str
    state: State
    why: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RecipeReport:
    """One recipe.

    Attributes:
        name: The recipe's.
        description: Its own.
        headline: The verdict in a sentence.
        state: Of all variants.
        cards: A variant each.
        verdicts: A gate each.
        facts: Short remarks: commit, machine, versions.
        sections: What follows.
        notices: What a reader must know, such as a report that is not of the current recipe.
        figures: All, for an index.
        command: What builds it, where nothing of it is built; else empty.
    """

    name: str
    description: str
    headline: str
    state: State
    cards: tuple[VariantCard, ...]
    verdicts: tuple[GateVerdict, ...]
    facts: tuple[str, ...]
    sections: tuple[PageSection, ...]
    notices: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    command: str = ""
