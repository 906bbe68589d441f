"""The JSON that the verbs on models, names and texts print with `--json`: `init`, `inspect`, `push`, `log`, ..."""

from typing import Any, Literal, TypedDict


class InitRecord(TypedDict):
    """Output of `init`.

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
    """Output of `inspect`.

    Attributes:
        path: The model's file.
        bytes: Its size, with external weights.
        ir_version: Of ONNX's format.
        opsets: Domain -> version.
        inputs: What it takes.
        outputs: What it gives.
        nodes: How many nodes it has.
        operators: Operator -> how many nodes.
        initializers: How many weights it has.
        parameters: How many elements all weights store, sparse ones and those of Constant nodes, too.
        weights_bytes: Their size.
        weights_bytes_by_dtype: Element type -> size of the weights of it.
        functions: How many functions it defines.
    """

    path: str
    bytes: int
    ir_version: int
    opsets: dict[str, int]
    inputs: list[ValueRecord]
    outputs: list[ValueRecord]
    nodes: int
    operators: dict[str, int]
    initializers: int
    parameters: int
    weights_bytes: int
    weights_bytes_by_dtype: dict[str, int]
    functions: int


class PushedRecord(TypedDict):
    """Output of `push`; sizes are in bytes.

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
    """Output of `pull`; sizes are in bytes.

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
    """Output of `graph`.

    Attributes:
        type: `graph`.
        steps: All steps, in an order in which they can be built.
    """

    type: Literal["graph"]
    steps: list[GraphStepRecord]


class LogRecord(TypedDict):
    """Output of `log`.

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
    """Output of `explain`.

    Attributes:
        type: `explain`.
        recipes: One for each combination of a matrix.
        keys: Of keys, the page of each, as the terminal shows it.
    """

    type: Literal["explain"]
    recipes: list[ExplainedRecord]
    keys: list[str]


class SchemaRecord(TypedDict):
    """Output of `schema` where it writes a file; else it prints the schema itself.

    Attributes:
        type: `schema`.
        written: The file.
    """

    type: Literal["schema"]
    written: str


class CompletionRecord(TypedDict):
    """Output of `completion`.

    Attributes:
        type: `completion`.
        shell: The shell.
        script: What it is to evaluate.
    """

    type: Literal["completion"]
    shell: str
    script: str
