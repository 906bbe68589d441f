"""Write the advice of `onnxbuild diagnose`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxbuild.onnxkit.drawing.numbers import is_known

if TYPE_CHECKING:
    from onnxbuild.diagnosis.diagnose import Diagnosis
    from onnxbuild.diagnosis.trials import RemedyTrial
    from onnxbuild.onnxkit.timing.ratios import Ratio

_SUGGESTED = 4

_MOSTLY = 0.5
"""A variant with a greater share of its nodes in fp32 is hardly one."""


def trial_line(trial: RemedyTrial) -> str:
    """Return a line about a remedy that was tried."""
    end = "passes" if trial.passed else f"fails: {trial.why}"
    score = "" if trial.score is None else f", score {trial.score:.4f}"
    if trial.reached:
        figures = f", {trial.reached}" if trial.passed else ""
        size = "" if trial.size_bytes is None else f", {_megabytes(trial.size_bytes)}"
        return f"try     {trial.remedy.what}{size}{figures}{score}: {end}"
    cosine = "" if trial.cosine_min is None else f", least cosine {trial.cosine_min:.6f}"
    return f"try     {trial.remedy.what}{cosine}{score}: {end}"


def advice(found: Diagnosis) -> list[str]:
    """Lines that end in YAML to paste, where something is known to help; without an error, the gates' own fixes."""
    from onnxbuild.catalog import all_features
    from onnxbuild.diagnosis.remedies import (
        do_less,
        keep_in_fp32,
        kept_nodes,
        milder_step,
        of_the_runtime,
    )

    if found.looked is None:
        return [f"fix of the gate that fails: {fix}" for fix in found.fixes]
    step = found.chain.models[found.looked]
    if found.misses_goal and found.trials:
        return _for_goal(found)
    if found.cure is not None:
        return [
            f"the least that passes: {found.cure.remedy.what}; paste this:",
            "",
            *found.cure.remedy.yaml,
        ]
    if found.trials:
        last = found.trials[-1].remedy.what
        count = len(found.trials)
        none = "the one build fails," if count == 1 else f"none of {count} builds passes, the last"
        return [f"{none} with {last}:", "another mode or tolerance suits this model better"]
    if found.is_of_the_runtime:
        return (
            list(of_the_runtime(found.variant, found.stages[-1].error)) if found.breaches else []
        )
    for feature in all_features():
        if step.kind in feature.diagnosis.advice:
            return list(feature.diagnosis.advice[step.kind])
    if (milder := milder_step(step)) is not None:
        less = do_less(found.recipe, found.variant, milder)
        return ["not tried by building; what to do less of:", "", *less[0].yaml] if less else []
    kept = kept_nodes(found.variant, step)
    if not found.groups or kept is None:
        return []
    if len(found.groups) == 1:
        only = ", ".join(found.groups[0])
        return [f"all of it is {only}: without that in few bits there is no such variant"]
    most = min(_SUGGESTED, len(found.groups) - 1)
    names = [name for group in found.groups[:most] for name in group]
    yaml = keep_in_fp32(found.recipe, found.variant, kept, names).yaml
    worst = "the worst node" if len(names) == 1 else f"the worst {len(names)} nodes"
    return [f"not tried by building; {worst} of {_count(found)} to leave in fp32:", "", *yaml]


def _for_goal(found: Diagnosis) -> list[str]:
    """Describe the nodes to leave in fp32 for a search's goal, and their cost."""
    assert found.goal is not None
    if found.cure is None:
        last = found.trials[-1]
        size = "" if last.size_bytes is None else f" ({_megabytes(last.size_bytes)})"
        most = f"{last.remedy.what}{size}, of {_count(found)} in few bits"
        return [
            f"even with {most}, '{found.trial}' fails: {last.why}",
            f"ask for less, or search elsewhere: {_elsewhere(found)}",
        ]
    kept = _added(found, found.cure)
    share = kept / max(1, _count(found))
    lines = [f"the least that meets the goal: {found.cure.remedy.what}, {found.cure.reached}"]
    if found.cost is not None:
        cost = found.cost
        lines.append(
            f"it costs: {_megabytes(cost.mended_bytes)}, {_megabytes(cost.tried_bytes)} as it was, "
            f"{_megabytes(cost.fp32_bytes)} in fp32"
            + _speed(cost.over_tried, "the speed it had")
            + _speed(cost.over_fp32, "the speed of fp32")
        )
        if cost.over_fp32 is not None and cost.over_fp32.high <= 1:
            lines.append("that is slower than fp32 on this machine: it saves size alone")
    if share > _MOSTLY:
        lines.append(
            f"that leaves {kept} of {_count(found)} nodes in fp32, nearly the fp32 model; "
            f"before that, try {_elsewhere(found)}"
        )
    return [*lines, "paste this:", "", *found.cure.remedy.yaml]


def _speed(ratio: Ratio | None, than: str) -> str:
    if ratio is None:
        return ""
    if not is_known(ratio.low, ratio.high):
        return f"; too few rounds to compare with {than}"
    return f"; {ratio.value:.2f} x ({ratio.low:.2f}-{ratio.high:.2f}) {than}"


def _elsewhere(found: Diagnosis) -> str:
    """Modes that the goal may be met with."""
    assert found.goal is not None
    other = (mode for mode in found.goal.modes if mode != found.variant.mode)
    return f"`include: [{', '.join((found.variant.mode, *other))}]` and more `trials`"


def _added(found: Diagnosis, trial: RemedyTrial) -> int:
    """Count the nodes that had few bits and are in fp32 now."""
    named = {name for group in found.groups for name in group}
    return len(named & set(trial.remedy.nodes))


def _count(found: Diagnosis) -> int:
    return sum(len(group) for group in found.groups)


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.3g} MB"
