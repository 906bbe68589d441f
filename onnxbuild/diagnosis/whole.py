"""Diagnose a pipeline: which component in few bits, and which of its nodes, cost the whole."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onnxbuild.building.api import BuildResult, Request, build, graph_of, load
from onnxbuild.building.wiring import RunOptions
from onnxbuild.catalog import MODES
from onnxbuild.core.ports import EventSink
from onnxbuild.core.recipe import Recipe, Variant
from onnxbuild.diagnosis.alone import assigned_in, gates_of, with_each_alone
from onnxbuild.diagnosis.measurements import measured_losses, node_losses
from onnxbuild.diagnosis.remedies import Remedy, keep_in_fp32
from onnxbuild.diagnosis.trials import RemedyTrial, least_that_passes
from onnxbuild.expansion.variants import flow
from onnxbuild.typed.typed_names import FoundName, find_deliverable

_FIGURES = ("kl", "top1", "perplexity_ratio", "score")
_SUGGESTED = 4


@dataclass(frozen=True, slots=True)
class LowPart:
    """A component in few bits."""

    recipe: Recipe
    variant: Variant

    @property
    def shown(self) -> str:
        """`two@decoder:int8`."""
        return f"{self.recipe.name}:{self.variant.name}"


@dataclass(frozen=True, slots=True)
class PartCost:
    """Cost of a component in few bits to the whole, all others unquantized.

    Attributes:
        figures: `kl`, `top1`, `perplexity_ratio` of greedy decoding, `score` by the user's metric; empty without a measure.
        found: What the gate finds; empty where it passes.
    """

    part: LowPart
    figures: Mapping[str, float]
    found: str


@dataclass(frozen=True, slots=True)
class WholeDiagnosis:
    """Result of a diagnosis of a pipeline.

    Attributes:
        name: `RECIPE@pipeline:VARIANT`.
        variants: Key of the recipe that says which variant each component has.
        breaches: (gate, what it found) of each gate that fails.
        fixes: Fixes that those gates suggest, each once.
        parts: Components in few bits, the costliest first.
        ranked_by: `kl`, in nats, or the user's metric, whose drop it is; empty where no node was measured.
        nodes: (component, node, what it alone costs the whole), the greatest first.
        unmeasured: How many nodes were not measured alone.
        trials: Remedies that were tried.
        suggested: The worst nodes in fp32; None where none was measured.
        cure: The fewest nodes in fp32 with which the gates pass; None if none did or none was tried.
    """

    name: str
    variants: str
    breaches: tuple[tuple[str, str], ...]
    fixes: tuple[str, ...]
    parts: tuple[PartCost, ...]
    ranked_by: str = ""
    nodes: tuple[tuple[str, str, float], ...] = ()
    unmeasured: int = 0
    trials: tuple[RemedyTrial, ...] = ()
    suggested: Remedy | None = None
    cure: RemedyTrial | None = None


@dataclass(frozen=True, slots=True)
class WholeVariant:
    """A pipeline's variant.

    Attributes:
        recipe: The pipeline's.
        variant: Its variant.
        parts: Component -> its variant; quantized or not.
        assigned: Variant of the pipeline -> component -> name of its variant; of all of its variants.
        gates: Steps that judge it.
    """

    recipe: Recipe
    variant: Variant
    parts: Mapping[str, LowPart]
    assigned: Mapping[str, Mapping[str, str]]
    gates: tuple[str, ...]

    @property
    def low(self) -> Mapping[str, LowPart]:
        """The components in few bits."""
        return {
            name: each
            for name, each in self.parts.items()
            if not MODES[each.variant.mode].is_plain
        }


def find_whole(request: Request, name: FoundName) -> WholeVariant | None:
    """Return the pipeline's variant that a name means; None if it means something else.

    Args:
        name: `RECIPE:VARIANT`.

    Raises:
        UsageError: There is no such variant.
    """
    loaded = load(request)
    graph = graph_of(request, loaded)
    found = find_deliverable(graph, name)
    recipes = {each.name: each for each in loaded.recipes}
    recipe = recipes[found.recipe]
    if not recipe.components:
        return None
    return WholeVariant(
        recipe,
        next(each for each in recipe.variants if each.name == found.name),
        {
            recipes[part].component: LowPart(
                recipes[part],
                next(each for each in recipes[part].variants if each.name == variant),
            )
            for part, variant in found.holds
        },
        assigned_in(graph, loaded.recipes, recipe),
        gates_of(graph, recipe.name, found.name),
    )


def diagnose_whole(
    request: Request,
    whole: WholeVariant,
    options: RunOptions,
    events: Sequence[EventSink] = (),
    *,
    bisect: bool = True,
    on_trial: Callable[[RemedyTrial], None] | None = None,
) -> WholeDiagnosis:
    """Find which component, and which nodes, cost a pipeline its tokens or its score.

    Each component is measured alone, as a variant of the pipeline in which all others are unquantized; each node of one in
    few bits by the sensitivity table of its component, in the same unit for all.

    Args:
        options: How to use the machine.
        events: Receives the events of the builds.
        bisect: Try nodes in fp32 if a gate fails.
        on_trial: Called with each remedy that is tried, if given.

    Raises:
        BuildError: A gate can't be run.
    """
    alone = {name: part.variant.name for name, part in whole.low.items()}
    asked, gates = with_each_alone(
        request, whole.recipe, whole.assigned, alone, whole.variant.name
    )
    wanted = (*whole.gates, *(each for own in gates.values() for each in own))
    result = build(replace(asked, only=wanted), options, events, lay=False)
    failing = {each.step: each.error for each in result.report.failures}
    if lacking := [
        each for each in whole.gates if result.graph.resolve(each) not in result.report.results
    ]:
        raise failing.get(lacking[0], result.report.failures[0].error)
    found = WholeDiagnosis(
        f"{whole.recipe.name}:{whole.variant.name}",
        f"{whole.recipe.component}: {{variants: {{{whole.variant.name}: ",
        tuple((each, failing[each].what) for each in whole.gates if each in failing),
        tuple(
            dict.fromkeys(failing[g].fix for g in whole.gates if g in failing and failing[g].fix)
        ),
        tuple(
            sorted(
                (_cost(each, result, gates[part]) for part, each in whole.low.items()),
                key=_costliest,
            )
        ),
    )
    found, kept = _with_nodes(request, whole, found, options, events)
    if not kept:
        return found
    order = list(kept)
    found = replace(found, suggested=_in_fp32(kept, order[:_SUGGESTED]))
    if not bisect or not found.breaches:
        return found
    tried: list[RemedyTrial] = []

    def passes(count: int) -> bool:
        tried.append(_tried(request, whole, _in_fp32(kept, order[:count]), options))
        if on_trial is not None:
            on_trial(tried[-1])
        return tried[-1].passed

    least = least_that_passes(len(order), passes)
    passing = [each for each in tried if each.passed]
    cure = None if least is None else min(passing, key=lambda each: len(each.remedy.nodes))
    return replace(found, trials=tuple(tried), cure=cure)


def _cost(part: LowPart, result: BuildResult, gates: Sequence[str]) -> PartCost:
    failing = {each.step: each.error.what for each in result.report.failures}
    figures = _figures(result, gates)
    return PartCost(part, figures, next((failing[each] for each in gates if each in failing), ""))


def _figures(result: BuildResult, gates: Sequence[str]) -> dict[str, float]:
    """Return what the first gate that ran measured of the whole."""
    made = (result.report.results.get(result.graph.resolve(each)) for each in gates)
    metrics = (each.metrics for each in made if each is not None and "skipped" not in each.metrics)
    first: Mapping[str, Any] = next(metrics, {})
    return {name: first[name] for name in _FIGURES if isinstance(first.get(name), int | float)}


def _costliest(cost: PartCost) -> tuple[float, float]:
    return -cost.figures.get("kl", 0.0), cost.figures.get("score", 0.0)


def _with_nodes(
    request: Request,
    whole: WholeVariant,
    found: WholeDiagnosis,
    options: RunOptions,
    events: Sequence[EventSink],
) -> tuple[WholeDiagnosis, dict[tuple[str, str], LowPart]]:
    """Return the diagnosis with what each node costs; and the nodes that can be left in fp32, the costliest first.

    One node at least stays in few bits in each component.
    """
    nodes: list[tuple[str, str, float]] = []
    kept: dict[tuple[str, str], LowPart] = {}
    for component, part in whole.low.items():
        if not node_losses().in_whole(part.recipe):
            continue
        costs = measured_losses(request, part.recipe, part.variant, options, events, of_whole=True)
        ranked = sorted(costs.of.items(), key=lambda each: -each[1])
        nodes += [(component, name, cost) for name, cost in ranked]
        if MODES[part.variant.mode].kept_nodes is not None:
            most = costs.nodes - 1
            kept |= {(component, name): part for name, cost in ranked[:most] if cost > 0}
        unmeasured = found.unmeasured + costs.nodes - len(costs.of)
        found = replace(found, ranked_by=costs.ranked_by or found.ranked_by, unmeasured=unmeasured)
    nodes.sort(key=lambda each: -each[2])
    ordered = ((component, name) for component, name, _ in nodes)
    return replace(found, nodes=tuple(nodes)), {
        each: kept[each] for each in ordered if each in kept
    }


def _in_fp32(kept: Mapping[tuple[str, str], LowPart], nodes: Sequence[tuple[str, str]]) -> Remedy:
    """Leave nodes of several components in fp32."""
    remedies = []
    for component in dict.fromkeys(component for component, _ in nodes):
        names = [name for owner, name in nodes if owner == component]
        part = kept[component, names[0]]
        way = MODES[part.variant.mode].kept_nodes
        assert way is not None
        remedies.append(keep_in_fp32(part.recipe, part.variant, way, names))
    count = "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"
    return Remedy(
        f"{count} in fp32",
        {key: value for each in remedies for key, value in each.settings.items()},
        (remedies[0].yaml[0], *(line for each in remedies for line in each.yaml[1:])),
        tuple(f"{component}/{name}" for component, name in nodes),
    )


def _tried(
    request: Request, whole: WholeVariant, remedy: Remedy, options: RunOptions
) -> RemedyTrial:
    settings = {**(request.settings or {}), **remedy.settings}
    result = build(replace(request, settings=settings, only=whole.gates), options, lay=False)
    failures = result.report.failures
    figures = _figures(result, whole.gates)
    return RemedyTrial(
        remedy=remedy,
        passed=result.exit_code == 0,
        why=failures[0].error.what if failures else "",
        cosine_min=None,
        reached=", ".join(
            f"{name} {value:.4g}" for name, value in figures.items() if name != "score"
        ),
        score=figures.get("score"),
    )


def advice_on_whole(found: WholeDiagnosis) -> Iterator[str]:
    """Yield lines that end in YAML to paste, where something is known to help."""
    if found.cure is not None:
        yield f"the least that passes: {found.cure.remedy.what}; paste this:"
        yield from ("", *found.cure.remedy.yaml)
    elif found.trials:
        yield f"none of {len(found.trials)} builds passes, the last with {found.trials[-1].remedy.what};"
        yield from _unquantized(found)
    elif found.suggested is not None:
        yield f"not tried by building; {found.suggested.what}:"
        yield from ("", *found.suggested.yaml)
    elif found.breaches:
        yield from (f"fix of the gate that fails: {fix}" for fix in found.fixes)
        if found.parts and not found.nodes:
            yield "nothing measures the whole: add `metric` and `min` to the pipeline, or look at each component:"
            yield from (f"onnxbuild diagnose {each.part.shown}" for each in found.parts)


def _unquantized(found: WholeDiagnosis) -> Iterator[str]:
    """Yield how the costliest component stays unquantized."""
    worst, *others = (each.part for each in found.parts)
    rest = {each.recipe.component: each.variant.name for each in others}
    yield f"leave '{worst.recipe.component}' unquantized, which costs most:"
    yield from ("", f"{found.variants}{flow(rest)}}}}}")
