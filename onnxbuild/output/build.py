"""JSON that `run`, `plan`, `why` and `reproduce` print with `--json`; the record of a variant, which others hold too."""

from typing import Any, Literal, TypedDict


class FindingRecord(TypedDict):
    """One breach of a gate.

    Attributes:
        what: The value found and the bound.
        where: Variant, output, point or node; may be empty.
        fix: What to try; may be empty.
    """

    what: str
    where: str
    fix: str


class VerdictRecord(TypedDict):
    """Verdict of one gate on a variant.

    Attributes:
        step: RECIPE:STEP of the gate.
        state: Whether it passed, failed, was skipped (its target or a tool is not on this machine), or
            did not run.
        passed: Whether it passed, or is not applicable.
        reason: Why it was skipped; else empty.
        findings: Its breaches.
    """

    step: str
    state: Literal["passed", "failed", "skipped", "not run"]
    passed: bool
    reason: str
    findings: list[FindingRecord]


class VariantRecord(TypedDict):
    """A folder of out/: a variant, an artifact made of one, a program or a package.

    Attributes:
        recipe: The recipe's name.
        variant: The folder's name: `int8`, `int8-ort`, `torchscript`.
        family: `variant`, `artifact`, `program` or `package`.
        of: Of a package, the name of what it holds; else empty.
        made: Whether its folder was laid.
        passed: Whether it was made and its gates passed. Gates that were skipped do not count, unless all
            of them were: then it did not pass, and did not fail.
        folder: Its folder, absolute; null where it was not made.
        model: The file that a runtime opens, absolute; null where there is none.
        cells: Its row of the table that the terminal shows: heading -> text.
        metrics: Step -> what it measured, with units in the names.
        verdicts: What its gates say.
    """

    recipe: str
    variant: str
    family: str
    of: str
    made: bool
    passed: bool
    folder: str | None
    model: str | None
    cells: dict[str, str]
    metrics: dict[str, dict[str, Any]]
    verdicts: list[VerdictRecord]


class FailureRecord(TypedDict):
    """A step that failed, or a gate.

    Attributes:
        step: RECIPE:STEP.
        code: Its exit code: 1 it broke, 3 the gate failed, 5 an undeclared input.
        what: What is wrong.
        where: The place as the terminal prints it.
        file: The file at fault: of your Python where that raised, else the recipe's; relative to the
            project's root.
        line: Its line; in a recipe, that of what asks for the step.
        column: Its column.
        fix: What to type; may be empty.
        log: The path of its log; null where it did not run now.
        blocked: How many steps depend on it and did not run.
    """

    step: str
    code: int
    what: str
    where: str
    file: str | None
    line: int | None
    column: int | None
    fix: str
    log: str | None
    blocked: int


class ResultRecord(TypedDict):
    """The last line of `run`.

    Attributes:
        type: `result`.
        exit_code: The run's.
        store: The store's folder, absolute.
        out: The folder with RECIPE/VARIANT/ below it, absolute.
        table: The table that the terminal shows: a row a variant, heading -> text.
        skipped: A line for each target that is not here.
        variants: All that was asked for, with paths, metrics and verdicts.
        failures: The steps that failed.
    """

    type: Literal["result"]
    exit_code: int
    store: str
    out: str
    table: list[dict[str, str]]
    skipped: list[str]
    variants: list[VariantRecord]
    failures: list[FailureRecord]


class ReasonRecord(TypedDict):
    """Reason for a step to run.

    Attributes:
        subject: What changed.
        old: Its value before; empty where there was none.
        new: Its value now; empty where it is gone.
    """

    subject: str
    old: str
    new: str


class PlannedRecord(TypedDict):
    """A line of `plan`: one step.

    Attributes:
        step: RECIPE:STEP.
        state: What a run would do with it; `maybe`: it follows a step that runs.
        reasons: Why it would run.
        after: The steps that it follows, where those run first.
    """

    step: str
    state: Literal["run", "maybe", "cached", "blocked", "left out", "fails"]
    reasons: list[ReasonRecord]
    after: list[str]


class CauseRecord(TypedDict):
    """A change that can change a recipe.

    Attributes:
        path: The file or folder, absolute.
        change: What happened to it.
        reason: Why it matters to the recipe.
    """

    path: str
    change: Literal["added", "changed", "deleted"]
    reason: str


class RecipeChangeRecord(TypedDict):
    """A line of `plan --since REV`: one recipe.

    Attributes:
        recipe: Its name.
        file: Its file, as given.
        since: The commit that the working tree is compared with.
        changed: Whether the changes since then can change the recipe.
        causes: The changes that can.
    """

    recipe: str
    file: str
    since: str
    changed: bool
    causes: list[CauseRecord]


class ReproducedRecord(TypedDict):
    """The last line of `reproduce`.

    Attributes:
        type: `reproduced`.
        exit_code: 0 the same bytes, 4 something differs, else as for `run`.
        compared: Steps whose outputs were compared.
        left_out: Steps that measure times.
        varied: What each fresh build had different, a list a build.
        wall_s: Time of all of it.
        step: The first step that differs; empty where none does.
        output: Its output that differs.
        what: What differs.
        fix: What to do.
    """

    type: Literal["reproduced"]
    exit_code: int
    compared: list[str]
    left_out: list[str]
    varied: list[list[str]]
    wall_s: float
    step: str
    output: str
    what: str
    fix: str


class UpstreamRecord(TypedDict):
    """A step upstream that runs for reasons of its own.

    Attributes:
        step: RECIPE:STEP.
        reasons: Why it would run.
    """

    step: str
    reasons: list[ReasonRecord]


class WhyRecord(TypedDict):
    """Output of `why`.

    Attributes:
        type: `why`.
        step: RECIPE:STEP.
        state: As in `plan`.
        reasons: Why it would run now.
        upstream: Steps that run first, and why, where that is the cause.
        blocked_by: Steps that fail, where it can't run.
        left_out: Why it is left out; empty where it is not.
        last: Why it last ran, a line each; null where it never ran here.
    """

    type: Literal["why"]
    step: str
    state: Literal["run", "maybe", "cached", "blocked", "left out"]
    reasons: list[ReasonRecord]
    upstream: list[UpstreamRecord]
    blocked_by: list[str]
    left_out: str
    last: list[str] | None
