"""What the verbs on models, names and texts print with `--json`: `init`, `inspect`, `diagnose`, `push`, `log`, ..."""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class InitRecord(TypedDict):
    """What `init` prints.

    Attributes:
        type: `init`.
        files: The files that were written.
        recipe: The recipe among them.
        about: What was found out, a line each.
        fill_in: Lines of the recipe that are left to fill in.
        next: The command to type next.
    """

    type: Literal["init"]
    files: list[str]
    recipe: str
    about: list[str]
    fill_in: list[int]
    next: str


class ValueRecord(TypedDict):
    """An input or output of a model.

    Attributes:
        name: Its name.
        dtype: Its element type; null where the model does not say.
        shape: Sizes and symbols, outermost first; null where the model does not say.
    """

    name: str
    dtype: str | None
    shape: list[int | str | None] | None


class InspectRecord(TypedDict):
    """What `inspect` prints.

    Attributes:
        path: The model's file.
        bytes: Its size, with external weights.
        ir_version: Of ONNX's format.
        opsets: Domain -> version.
        inputs: What it takes.
        outputs: What it gives.
        nodes: How many nodes it has.
        operators: Operator -> how many nodes.
        parameters: How many elements its weights have.
        weights_bytes_by_dtype: Element type -> size of the weights of it.
    """

    path: str
    bytes: int
    ir_version: int
    opsets: dict[str, int]
    inputs: list[ValueRecord]
    outputs: list[ValueRecord]
    nodes: int
    operators: dict[str, int]
    parameters: int
    weights_bytes_by_dtype: dict[str, int]


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
        max_abs: Largest absolute difference.
        cosine_min: Least cosine similarity of an output.
        equal_min: Least share of equal elements; null for floats.
        sqnr: Signal-to-noise ratio in dB; null where nothing differs.
        share: Its share of the whole error.
        lost: What has become NaN or infinite; null where nothing has.
    """

    step: str
    against: str
    max_abs: float | None
    cosine_min: float | None
    equal_min: float | None
    sqnr: float | None
    share: float | None
    lost: Any


class NodeRecord(TypedDict):
    """A node that both models have.

    Attributes:
        name: Its name.
        op_type: Its operator.
        in_db: Signal-to-noise ratio of its worst input, in dB.
        out_db: Of its worst output.
        cosine: Least cosine similarity of an output.
        lost: What has become NaN or infinite.
        behind: Nodes that were fused into it.
        now: What it is in the variant's model.
        body_nodes: How many nodes its bodies have.
        changed_in_bodies: Which of them changed.
    """

    name: str
    op_type: str
    in_db: float | None
    out_db: float | None
    cosine: float | None
    lost: Any
    behind: list[Any]
    now: Any
    body_nodes: Any
    changed_in_bodies: list[Any]


class RemedyRecord(TypedDict):
    """A remedy that was tried.

    Attributes:
        what: The remedy.
        passed: Whether every failing gate passes with it.
        cosine_min: Least cosine similarity of an output.
        reached: How near it comes to a search's goal; null without one.
        size_bytes: Size of the model; null where it was not made.
    """

    what: str
    passed: bool
    cosine_min: float | None
    reached: Any
    size_bytes: int | None


class GoalRecord(TypedDict):
    """A search's goal.

    Attributes:
        asked: As the recipe writes it.
        reached: How near the trial comes.
        missed: Why it is missed; empty where it is met.
    """

    asked: str
    reached: Any
    missed: Any


class DiagnosisRecord(TypedDict):
    """What `diagnose` prints.

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


class PushedRecord(TypedDict):
    """What `push` prints; sizes are in bytes.

    Attributes:
        type: `pushed`.
        reference: Where it is.
        digest: `sha256:` and 64 hex digits.
        files: How many files it has.
        bytes: Their size.
        blobs_sent: How many were sent.
        bytes_sent: The size of those.
        blobs_known: How many were there.
        attached: What was attached: a signature, a bill of materials.
        tag_was: The digest that the tag named before; empty where it named none.
    """

    type: Literal["pushed"]
    reference: str
    digest: str
    files: int
    bytes: int
    blobs_sent: int
    bytes_sent: int
    blobs_known: int
    attached: list[str]
    tag_was: str


class PulledRecord(TypedDict):
    """What `pull` prints; sizes are in bytes.

    Attributes:
        type: `pulled`.
        reference: Where it was.
        digest: `sha256:` and 64 hex digits.
        folder: Where it is now.
        files: How many files it has.
        bytes: Their size.
        bytes_fetched: What was fetched; the rest was here.
        signature: `checked`, `not checked` or `none`.
        written: Whether the folder was written now; else it was there, identical.
    """

    type: Literal["pulled"]
    reference: str
    digest: str
    folder: str
    files: int
    bytes: int
    bytes_fetched: int
    signature: str
    written: bool


class GraphStepRecord(TypedDict):
    """A step of the graph.

    Attributes:
        step: RECIPE:STEP.
        kind: Its kind.
        inputs: Input -> RECIPE:STEP that makes it.
        file: The recipe that asks for it, relative to the project's root.
        line: The line that asks for it; null where that is no line of a file.
    """

    step: str
    kind: str
    inputs: dict[str, str]
    file: str
    line: int | None


class GraphRecord(TypedDict):
    """What `graph` prints.

    Attributes:
        type: `graph`.
        steps: All steps, in an order in which they can be built.
    """

    type: Literal["graph"]
    steps: list[GraphStepRecord]


class LogRecord(TypedDict):
    """What `log` prints.

    Attributes:
        type: `log`.
        step: As it was given.
        path: The log's file.
        text: What the step printed.
    """

    type: Literal["log"]
    step: str
    path: str
    text: str


class ExplainedRecord(TypedDict):
    """One recipe in full.

    Attributes:
        yaml: With comments that say where values come from.
        recipe: The same as values.
    """

    yaml: str
    recipe: dict[str, Any]


class ExplainRecord(TypedDict):
    """What `explain` prints.

    Attributes:
        type: `explain`.
        recipes: One for each combination of a matrix.
    """

    type: Literal["explain"]
    recipes: list[ExplainedRecord]


class SchemaRecord(TypedDict):
    """What `schema` prints where it writes a file; else it prints the schema itself.

    Attributes:
        type: `schema`.
        written: The file.
    """

    type: Literal["schema"]
    written: str


class CompletionRecord(TypedDict):
    """What `completion` prints.

    Attributes:
        type: `completion`.
        shell: The shell.
        script: What it is to evaluate.
    """

    type: Literal["completion"]
    shell: str
    script: str
