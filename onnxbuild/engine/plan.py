"""Plan a run: what it would do, without doing it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from onnxbuild.core.action import Action, ActionResult
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.decision import Decision, Hit, Reason
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
    planning = _Planning(graph, catalog, fingerprints, host)
    for names in graph.waves():
        actions = {name: action for name in names if (action := planning.action(name)) is not None}
        store.expect([action.key for action in actions.values()])
        for name, action in actions.items():
            decision = decide(
                graph.steps[name], action, store=store, fingerprints=fingerprints, history=history
            )
            planning.settle(name, action, decision)
    return tuple(planning.planned[name] for name in graph.steps)


class _Planning:
    """The prospects that are known so far.

    Attributes:
        planned: Step -> its prospect.
    """

    def __init__(
        self, graph: Graph, catalog: Mapping[str, StepKind], fingerprints: Fingerprints, host: Host
    ) -> None:
        self._graph, self._catalog = graph, catalog
        self._fingerprints, self._host = fingerprints, host
        self._outputs: dict[str, Mapping[str, Artifact]] = {}
        self._failing: set[str] = set()
        self._left_out: dict[str, str] = {}
        self.planned: dict[str, Planned] = {}

    def action(self, name: str) -> Action | None:
        """Return a step's action; None if there is none yet, which its prospect then says."""
        if name in self._left_out and name not in self._failing:
            self.planned[name] = Planned(name, left_out=self._left_out[name])
            return None
        step = self._graph.steps[name]
        refs = {
            key: ref
            for key, ref in step.inputs.items()
            if not (key in step.optional_inputs and ref.step in self._left_out)
        }
        needs = dict.fromkeys(ref.step for ref in refs.values())
        if blocked := tuple(need for need in needs if need in self._failing):
            self._failing.add(name)
            self.planned[name] = Planned(name, blocked=blocked)
            return None
        if undecided := tuple(need for need in needs if need not in self._outputs):
            self.planned[name] = Planned(name, after=undecided)
            return None
        inputs = {key: self._outputs[ref.step][ref.output] for key, ref in refs.items()}
        try:
            return make_action(
                step, self._catalog[step.kind], inputs, self._fingerprints, self._host
            )
        except BuildError as fault:
            self._failing.add(name)
            self.planned[name] = Planned(name, error=fault)
            return None

    def settle(self, name: str, action: Action, decision: Decision) -> None:
        """Note whether a step has a result, and what follows from it."""
        if not isinstance(decision, Hit):
            self.planned[name] = Planned(name, reasons=decision.reasons, action=action)
            return
        result = decision.result
        not_applicable, error = result.not_applicable, gate_error(name, result.findings)
        why_left_out = ""
        if not_applicable is not None:
            gone = self._graph.left_out_with(name)
            self._left_out |= dict.fromkeys(gone.steps, not_applicable.what)
            if gone.is_needed:
                self._failing.update(gone.steps)
                error = NotApplicableError(
                    not_applicable.what, where=not_applicable.where, fix=not_applicable.fix
                )
            else:
                why_left_out = not_applicable.what
        elif error is None:
            self._outputs[name] = result.outputs
        else:
            self._failing.add(name)
        self.planned[name] = Planned(
            name, hit=name in self._outputs, error=error, left_out=why_left_out,
            outputs=self._outputs.get(name, {}), action=action,
            result=None if not_applicable is not None else result,
        )  # fmt: skip


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
