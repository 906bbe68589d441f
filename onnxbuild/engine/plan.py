"""Plan a run: what it would do, without doing it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from onnxbuild.core.action import Action, ActionResult
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.decision import Hit, Reason
from onnxbuild.core.errors import BuildError, NotApplicableError
from onnxbuild.core.graph import Graph
from onnxbuild.core.ports import Fingerprints, History, Host, Store
from onnxbuild.core.step import StepKind
from onnxbuild.engine.decide import decide, make_action
from onnxbuild.engine.report import gate_error


@dataclass(frozen=True, slots=True)
class Planned:
    """One step's prospect.

    Attributes:
        step: Its name.
        hit: Its result is there.
        reasons: Why it would run.
        after: Steps that run first and whose output decides; empty where it is known already.
        error: Why it can't run at all, or the gate that it fails.
        blocked: Steps that it needs and that fail.
        left_out: Why it is left out: it, or a step that it needs, is not applicable.
        outputs: Of a result that is there.
        result: That result, a failed gate's too; None where there is none.
        action: What decides it; None where that is not known yet.
    """

    step: str
    hit: bool = False
    reasons: tuple[Reason, ...] = ()
    after: tuple[str, ...] = ()
    error: BuildError | None = None
    blocked: tuple[str, ...] = ()
    left_out: str = ""
    outputs: Mapping[str, Artifact] = field(default_factory=dict)
    result: ActionResult | None = None
    action: Action | None = None


def plan(
    graph: Graph,
    catalog: Mapping[str, StepKind],
    *,
    store: Store,
    fingerprints: Fingerprints,
    history: History,
    host: Host,
) -> tuple[Planned, ...]:
    """Every step's prospect, in graph order.

    A step after one that would run may still turn out up to date: if the new output has the old
    content, it is cut off. So it is named with the steps that decide it.

    Args:
        graph: What would be built.
        catalog: Step kinds by name.
        fingerprints: How files and packages are now.
        history: What steps were last built from.
        host: The machine that would run them.
    """
    outputs: dict[str, Mapping[str, Artifact]] = {}
    failing: set[str] = set()
    left_out: dict[str, str] = {}
    planned = []
    for name, step in graph.steps.items():
        if name in left_out and name not in failing:
            planned.append(Planned(name, left_out=left_out[name]))
            continue
        refs = {
            key: ref
            for key, ref in step.inputs.items()
            if not (key in step.optional_inputs and ref.step in left_out)
        }
        needs = dict.fromkeys(ref.step for ref in refs.values())
        if blocked := tuple(need for need in needs if need in failing):
            failing.add(name)
            planned.append(Planned(name, blocked=blocked))
            continue
        undecided = tuple(need for need in needs if need not in outputs)
        if undecided:
            planned.append(Planned(name, after=undecided))
            continue
        inputs = {key: outputs[ref.step][ref.output] for key, ref in refs.items()}
        try:
            action = make_action(step, catalog[step.kind], inputs, fingerprints, host)
        except BuildError as fault:
            failing.add(name)
            planned.append(Planned(name, error=fault))
            continue
        decision = decide(step, action, store=store, fingerprints=fingerprints, history=history)
        if not isinstance(decision, Hit):
            planned.append(Planned(name, reasons=decision.reasons, action=action))
            continue
        result = decision.result
        not_applicable, error = result.not_applicable, gate_error(name, result.findings)
        why_left_out = ""
        if not_applicable is not None:
            gone = graph.left_out_with(name)
            left_out |= dict.fromkeys(gone.steps, not_applicable.what)
            if gone.is_needed:
                failing.update(gone.steps)
                error = NotApplicableError(
                    not_applicable.what, where=not_applicable.where, fix=not_applicable.fix
                )
            else:
                why_left_out = not_applicable.what
        elif error is None:
            outputs[name] = result.outputs
        else:
            failing.add(name)
        planned.append(
            Planned(
                name, hit=name in outputs, error=error, left_out=why_left_out,
                outputs=outputs.get(name, {}), action=action,
                result=None if not_applicable is not None else result,
            )
        )  # fmt: skip
    return tuple(planned)


def needed_artifacts(
    graph: Graph, planned: Sequence[Planned], forced: Collection[str] = ()
) -> Iterator[Artifact]:
    """Yield the artifacts whose content a build opens: what it delivers, and the inputs of what would run, or might.

    Args:
        planned: Each step's prospect.
        forced: Names of steps that run although they are up to date.
    """
    outputs = {each.step: each.outputs for each in planned}
    refs = [ref for view in graph.deliverables for ref, _ in view.parts]
    for each in planned:
        if not each.hit or each.step in forced:
            refs += graph.steps[each.step].inputs.values()
    for ref in dict.fromkeys(refs):
        artifact = outputs.get(ref.step, {}).get(ref.output)
        if artifact is not None:
            yield artifact
