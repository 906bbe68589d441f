"""JSON that `diagnose` prints with `--json`."""

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
        cost: What it alone costs the pipeline of its component, or on the data that rank nodes, in the unit of `ranked_by`;
            null where that was not measured.
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
    cost: float | None


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
        ranked_by: Unit of what nodes cost: `kl` in nats, the metric whose drop it is, or a distance of outputs; null where that
            was not measured.
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
    ranked_by: str | None
    trials: list[RemedyRecord]
    goal: GoalRecord | None
    cost: dict[str, Any] | None
    yaml: list[str]


class PartCostRecord(TypedDict):
    """Cost of a component in few bits to its pipeline, all others unquantized.

    Attributes:
        component: The component.
        variant: Its variant.
        figures: `kl`, `top1` and `perplexity_ratio` of greedy decoding, `score` by a metric; empty without a measure.
        found: What the gate finds; empty where it passes.
    """

    component: str
    variant: str
    figures: dict[str, float]
    found: str


class WholeNodeRecord(TypedDict):
    """A node in few bits.

    Attributes:
        component: Whose it is.
        name: Its name.
        cost: What it alone costs the whole, in the unit of `ranked_by`.
    """

    component: str
    name: str
    cost: float


class WholeDiagnosisRecord(TypedDict):
    """Output of `diagnose` of a pipeline.

    Attributes:
        variant: RECIPE@pipeline:VARIANT.
        failing: The gates that fail.
        components: Components in few bits, the costliest first.
        ranked_by: Unit of what nodes cost: `kl` in nats, or the metric whose drop it is; null where none was measured.
        nodes: Nodes of all components, the costliest first.
        unmeasured: How many nodes were not measured alone.
        trials: Remedies that were tried.
        yaml: The advice, a line each.
    """

    variant: str
    failing: list[GateBreachRecord]
    components: list[PartCostRecord]
    ranked_by: str | None
    nodes: list[WholeNodeRecord]
    unmeasured: int
    trials: list[RemedyRecord]
    yaml: list[str]
