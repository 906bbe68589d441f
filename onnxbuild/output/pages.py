"""JSON that `diff`, `view` and `watch` print with `--json`."""

from typing import Any, Literal, TypedDict


class SideRecord(TypedDict):
    """One of the two that `diff` compares.

    Attributes:
        given: As it was typed.
        kind: What it was taken for.
        title: What a page calls it.
        bundles: Names of what it holds, RECIPE:VARIANT where it has a recipe.
    """

    given: str
    kind: Literal["model", "build", "folder", "release", "commit"]
    title: str
    bundles: list[str]


class DifferenceRecord(TypedDict):
    """One difference.

    Attributes:
        group: Of what: `verdicts`, `graph`, ...
        sentence: As the terminal says it.
        variants: Where it was found.
        data: The same in parts; `kind` says which parts. Of several variants, the first one's.
        data_by_variant: The same of each variant that has other parts, such as other nodes.
    """

    group: str
    sentence: str
    variants: list[str]
    data: dict[str, Any]
    data_by_variant: dict[str, dict[str, Any]]


class LatencyRecord(TypedDict):
    """Latency of a variant on both sides.

    Attributes:
        variant: Its name.
        provider: Where it ran.
        point: At which sizes.
        sentence: As the terminal says it.
        differs: Whether the two were measured side by side and their intervals lie apart.
        before_ms: Median, and the 95 % interval around it.
        after_ms: The same of the other side.
        speedup: Ratio with its interval, of a measurement side by side; else null.
    """

    variant: str
    provider: str
    point: str
    sentence: str
    differs: bool
    before_ms: list[float]
    after_ms: list[float]
    speedup: list[float | None] | None


class DiffRecord(TypedDict):
    """Output of `diff`.

    Attributes:
        type: `diff`.
        equal: Whether nothing differs; latencies never count.
        before: The first.
        after: The second.
        differences: The most important first.
        latencies: Recorded, or measured side by side with `--bench`.
        notes: What could not be compared, and what to type.
    """

    type: Literal["diff"]
    equal: bool
    before: SideRecord
    after: SideRecord
    differences: list[DifferenceRecord]
    latencies: list[LatencyRecord]
    notes: list[str]


class ViewRecord(TypedDict):
    """Output of `view`.

    Attributes:
        type: `view`.
        model: The model's file.
        path: The page or picture that was written.
        about: What is in it, in a few words.
    """

    type: Literal["view"]
    model: str
    path: str
    about: str


class RecipeVerdict(TypedDict):
    """Verdict of a report on a recipe.

    Attributes:
        state: Whether its gates passed: `passed`, `failed`, `skipped`, `not run`; `not built` where nothing of it is.
        headline: In a sentence.
    """

    state: str
    headline: str


class ReportRecord(TypedDict):
    """Output of `report`.

    Attributes:
        type: `report`.
        path: The page that was written.
        bytes: Its size.
        recipes: Recipe -> what the page says of it.
    """

    type: Literal["report"]
    path: str
    bytes: int
    recipes: dict[str, RecipeVerdict]


class WatchRecord(TypedDict):
    """Output of `watch` of a build, a line each.

    Attributes:
        type: `watched`.
        saved: The files that were saved; none at first.
        exit_code: As `run` would end.
        counts: How many steps were built, reused and failed, in words.
        rows: The table, a mapping of title to cell a row.
        moved: What differs from the last good build's table, a sentence each.
        failures: What failed, as the terminal says it.
        error: Why nothing ran; empty where something did.
    """

    type: Literal["watched"]
    saved: list[str]
    exit_code: int
    counts: str
    rows: list[dict[str, str]]
    moved: list[str]
    failures: list[str]
    error: str
