"""Sentences of a search: its choice, the goal that it missed, and what it can't be sure of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnxbuild.core.sizes import figure
from onnxbuild.core.step import Finding
from onnxbuild.onnxkit.search.goals import Goal, reached, written
from onnxbuild.onnxkit.search.trial_latencies import MeasuredTrials

_DOUBT = 0.06
"""A trial that may be faster than the chosen by more is reported: the measurement was too noisy."""

Row = Mapping[str, Any]
"""A trial of a search's report."""


def none_meets(variant: str, goal: Goal, margin: float, tried: int, nearest: Row) -> Finding:
    """Return the finding that no trial meets a variant's goal."""
    spare = f" with a margin of {margin:g}" if margin else ""
    parts = [each["part"] for each in nearest["lost_parts"]]
    without = f", and loses {', '.join(parts)}" if parts else ""
    return Finding(
        f"none of {tried} trials meets the goal ({written(goal)}){spare}; the nearest, "
        f"'{nearest['name']}', reaches {reached(goal, nearest['choosing'])}{without}",
        f"variant '{variant}'",
        "ask for less, raise `trials`, or add modes to `include`",
    )


def misses_judging(variant: str, goal: Goal, margin: float, chosen: Row) -> Finding:
    """The chosen trial does not hold on the data that judges."""
    samples = chosen["judging"].get("samples")
    data = "evaluate" if set(chosen["missed_judging"]) == {"max_drop"} else "fidelity"
    others = f"the {samples} others" if samples and data == "fidelity" else "the others"
    return Finding(
        f"'{chosen['name']}' meets the goal ({written(goal)}) on the samples that it was chosen by "
        f"({reached(goal, chosen['choosing'])}), but not on {others}: "
        f"{reached(goal, chosen['judging'])}",
        f"variant '{variant}'",
        f"raise `margin` above {margin:g}, or yield more `{data}` data",
    )


def choice(variant: str, goal: Goal, chosen: Row, tried: int) -> str:
    """Return the choice, and the YAML that gives it without a search."""
    return (
        f"variant '{variant}': '{chosen['name']}' is the fastest of {tried} trials that meets the "
        f"goal ({figure(chosen['latency'], 3)} ms, {reached(goal, chosen['judging'])} where it is "
        f"judged); written out: {chosen['written']}"
    )


def not_applicable(variant: str, names: Sequence[str]) -> str:
    """Trials that are not there."""
    what = f"trial '{names[0]}' is" if len(names) == 1 else f"trials {', '.join(names)} are"
    return f"variant '{variant}': {what} left out: not applicable to this model"


def lost(variant: str, rows: Sequence[Row]) -> tuple[str, ...]:
    """Return a line on the trials that lose a part of an output, which are not taken whatever their figures."""
    found = {row["name"]: row["lost_parts"][0]["part"] for row in rows if row["lost_parts"]}
    if not found:
        return ()
    names, parts = (
        ", ".join(f"'{each}'" for each in found),
        ", ".join(dict.fromkeys(found.values())),
    )
    return (f"variant '{variant}': not taken, because {parts} is lost in it: {names}",)


def doubts(
    variant: str, met: Sequence[Row], chosen: Row, measured: MeasuredTrials
) -> tuple[str, ...]:
    """Trials that meet the goal, too, and may be faster; and whether fp32 is."""
    found = []
    for row in met:
        if row is chosen:
            continue
        ratio = measured.ratio(row["name"], chosen["name"])
        if ratio.low < 1 / (1 + _DOUBT):
            bounds = f" ({ratio.low:.2f} to {ratio.high:.2f})" if ratio.low else ""
            found.append(f"'{row['name']}' {ratio.value:.2f} x{bounds}")
    slower = (chosen["speedup"]["high"] or 1) < 1
    notes = (_slower(variant, chosen),) if slower else ()
    if not found:
        return notes
    note = (
        f"variant '{variant}': the machine was too noisy to decide whether others that meet the goal "
        f"are faster than '{chosen['name']}': its time is {', '.join(found)}; search again when it "
        "is idle"
    )
    return (*notes, note)


def few(variant: str, goal: Goal, chosen: Row, least: int) -> tuple[str, ...]:
    """Data that both chooses and judges.

    Args:
        variant: Its name.
        goal: What is asked of it.
        chosen: Its trial.
        least: Samples that are halved.
    """
    notes = []
    samples = chosen["judging"].get("samples")
    if samples is not None and not chosen["halved"]:
        counted = f"{samples} samples" if samples > 1 else "one sample"
        notes.append(
            f"variant '{variant}': {counted} of `fidelity` data both choose and judge, and other "
            f"data may not keep the goal; yield {least} or more"
        )
    if goal.max_drop is not None and not chosen["halved_drop"]:
        notes.append(
            f"variant '{variant}': all of the `evaluate` data both chooses and judges, and other "
            f"data may drop by more than {goal.max_drop:g}; yield {least} samples or more, of which "
            "either half can be scored"
        )
    return tuple(notes)


def _slower(variant: str, chosen: Row) -> str:
    ratio = chosen["speedup"]
    return (
        f"variant '{variant}': '{chosen['name']}' is slower than fp32 on this machine "
        f"({ratio['value']:.2f} x, {ratio['low']:.2f} to {ratio['high']:.2f}): it saves size alone"
    )
