"""JSON that `diagnose` prints with `--json`."""

from __future__ import annotations

from typing import Any, TypedDict


class GateBreachRecord(TypedDict):
    """A gate that fails.

    Attributes:
        gate: Its step.
        what: What it found.
    """

    gate: str
    what: str


class StageRecord(TypedDict):
    """One step's part in a variant's error.

    Attributes:
        step: Its name.
        against: What its model is compared with.
        max_abs: Largest absolute difference; null where no float was compared.
        cosine_min: Least cosine similarity of an output; null where no float was compared.
        equal_min: Least share of equal elements; null for floats.
        sqnr: Signal-to-noise ratio in dB, as text; `exact` where nothing differs, `-` where nothing was compared.
        share: Its share of the whole error.
        lost: What has become NaN or infinite; empty where nothing has.
    """

    step: str
    against: str
    max_abs: float | None
    cosine_min: float | None
    equal_min: float | None
    sqnr: str
    share: float | None
    lost: str


class NodeRecord(TypedDict):
    """A node that both models have.

    Attributes:
        name: Its name.
        op_type: Its operator.
        in_db: Signal-to-noise ratio of its worst input in dB, as text.
        out_db: Of its worst output.
        cosine: Least cosine similarity of an output.
        lost: What has become NaN or infinite; empty where nothing has.
        behind: Nodes that were fused into it.
        now: What it is in the variant's model.
        body_nodes: How many nodes its bodies have.
        changed_in_bodies: Which of them changed.
    """

    name: str
    op_type: str
    in_db: str
    out_db: str
    cosine: float | None
    lost: str
    behind: list[str]
    now: str
    body_nodes: int
    changed_in_bodies: list[str]


class RemedyRecord(TypedDict):
    """A remedy that was tried.

    Attributes:
        what: The remedy.
        passed: Whether every failing gate passes with it.
        cosine_min: Least cosine similarity of an output.
        reached: How near it comes to a search's goal; null without one.
        size_bytes: Size of the model; null where it was not made.
        score: The user's metric; null where it was not scored.
    """

    what: str
    passed: bool
    cosine_min: float | None
    reached: str | None
    size_bytes: int | None
    score: float | None


class GoalRecord(TypedDict):
    """A search's goal.

    Attributes:
        asked: As the recipe writes it.
        reached: How near the trial comes.
        missed: Why it is missed; empty where it is met.
    """

    asked: str
    reached: str
    missed: str


class DiagnosisRecord(TypedDict):
    """Output of `diagnose`.

    Attributes:
        variant: RECIPE:VARIANT.
        trial: Of a search, the trial that was looked at.
        target: Where it was looked at.
        runtime: With which ONNX Runtime; null where there is one alone.
        failing: The gates that fail.
        stages: Each step's part in the error.
        fault: The first step that brings a real part of it in; null without error.
        first_below: The first node whose output is below --below dB.
        nodes: The nodes across that step, in the graph's order.
        trials: Remedies that were tried.
        goal: What a search asks; null without one.
        cost: What the remedy costs in size and speed; null where that was not measured.
        yaml: The advice, a line each.
    """

    variant: str
    trial: str | None
    target: str
    runtime: str | None
    failing: list[GateBreachRecord]
    stages: list[StageRecord]
    fault: str | None
    first_below: str | None
    nodes: list[NodeRecord]
    trials: list[RemedyRecord]
    goal: GoalRecord | None
    cost: dict[str, Any] | None
    yaml: list[str]
