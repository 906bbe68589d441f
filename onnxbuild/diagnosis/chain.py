"""The steps that a variant's model goes through, from its export on, and the gates that judge it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from onnxbuild.catalog import all_features
from onnxbuild.core.action import ActionResult
from onnxbuild.core.graph import Graph, Step
from onnxbuild.core.target import CPU_TARGET, Target
from onnxbuild.typed.typed_names import FoundName, find_onnx


@dataclass(frozen=True, slots=True)
class Chain:
    """A variant's way.

    Attributes:
        recipe: The recipe's name.
        variant: The variant's.
        models: Steps whose model each follows from the one before: export, ..., the variant's own.
        gates: Steps that judge it.
        reference: The step whose points it is compared on.
        judge: The step that compares it with the reference: on the first target, or, once something was
            built, on the first whose gate fails, else on the first that was not skipped.
        target: Where that step runs it.
    """

    recipe: str
    variant: str
    models: tuple[Step, ...]
    gates: tuple[Step, ...]
    reference: str
    judge: str
    target: Target


def find_variant(graph: Graph, name: FoundName) -> tuple[str, str]:
    """The recipe and the variant that a name means.

    Args:
        name: `RECIPE:VARIANT`.

    Raises:
        UsageError: There is none, it is no ONNX variant, or several recipes of a matrix have it.
    """
    found = find_onnx(graph, name, "diagnose")
    return found.recipe, found.name


def chain_of(graph: Graph, recipe: str, variant: str) -> Chain:
    """Return how a variant's model is made; of a search, `pinned` gives the trial first."""
    own = [
        step
        for name, step in graph.steps.items()
        if (at := graph.addresses[name]).recipe == recipe and at.bundle == variant and not at.trial
    ]
    compared, judging = comparing_kinds(), judging_kinds()
    gates = tuple(step for step in own if step.kind in judging)
    first = next(step for step in gates if step.kind in compared)
    models: list[Step] = []
    name = first.inputs["model"].step
    while True:
        step = graph.steps[name]
        models.insert(0, step)
        if "model" not in step.inputs:
            break
        name = step.inputs["model"].step
    return Chain(
        recipe=recipe,
        variant=variant,
        models=tuple(models),
        gates=gates,
        reference=first.inputs["reference"].step,
        judge=first.name,
        target=_target_of(first),
    )


def judged_on(
    chain: Chain, results: Mapping[str, ActionResult], failing: Collection[str] = ()
) -> Chain:
    """The chain, looked at where its variant was run.

    That is the first target of which a gate fails, or the first that was not skipped; as it was, if
    the variant was run on none.

    Args:
        chain: As `chain_of` gives it.
        results: Step -> its result.
        failing: Names of the gates that fail.
    """
    bad = [_target_of(step) for step in chain.gates if step.name in failing]
    compared = comparing_kinds()
    ran = [
        step
        for step in chain.gates
        if step.kind in compared
        and (made := results.get(step.name)) is not None
        and "skipped" not in made.metrics
    ]
    ran.sort(key=lambda step: _target_of(step) not in bad)
    return replace(chain, judge=ran[0].name, target=_target_of(ran[0])) if ran else chain


def comparing_kinds() -> frozenset[str]:
    """Return the step kinds that compare a variant's outputs with the reference's."""
    return frozenset(kind for each in all_features() for kind in each.diagnosis.compares)


def judging_kinds() -> frozenset[str]:
    """Return the step kinds that fail a variant for its outputs; those that compare are among them."""
    judges = (kind for each in all_features() for kind in each.diagnosis.judges)
    return comparing_kinds().union(judges)


def _target_of(gate: Step) -> Target:
    """The target that a gate judges on; the CPU where it runs nothing."""
    target: Target = getattr(gate.params, "target", CPU_TARGET)
    return target
