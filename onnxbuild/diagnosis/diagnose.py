"""A variant's diagnosis: which gates fail, which step and nodes bring the error in, what mends it."""

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from onnxbuild.building.api import BuildResult, Request, build, graph_of, load
from onnxbuild.building.choices import choices_of
from onnxbuild.building.wiring import RunOptions
from onnxbuild.core.errors import EXIT_GATE
from onnxbuild.core.ports import EventSink
from onnxbuild.core.recipe import Recipe, Variant
from onnxbuild.diagnosis.chain import Chain, chain_of, find_variant, judged_on
from onnxbuild.diagnosis.measurements import (
    NodeCosts,
    RemedyCost,
    Stage,
    artifacts_shown,
    by_loss,
    first_at_fault,
    is_of_the_runtime,
    measure_cost,
    measured_losses,
    node_losses,
    nodes_on,
    openable,
    shown_runtime,
    stages_of,
)
from onnxbuild.diagnosis.remedies import (
    as_setting,
    do_less,
    keep_in_fp32,
    kept_nodes,
    key_of,
    milder_step,
    suspects,
)
from onnxbuild.diagnosis.trials import RemedyTrial, SearchGoal, Standing, Trials, pin_trial
from onnxbuild.onnxkit.accuracy.isolated_node_error import output_effects
from onnxbuild.onnxkit.accuracy.node_trace import NodeError, trace
from onnxbuild.onnxkit.accuracy.point_reports import deciding_points
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.reference_files import read_reference
from onnxbuild.onnxkit.sessions.custom_operators import OPERATORS_INPUT, operators_of
from onnxbuild.typed.typed_names import FoundName


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Result of a diagnosis.

    Attributes:
        recipe: The variant's recipe.
        variant: The variant; of a search, one of its trials.
        trial: Which; empty where nothing was searched.
        chain: The variant's way.
        breaches: (gate, what it found) of each gate that fails.
        fixes: Fixes that those gates suggest, each once.
        stages: Each step's part in the error; the last is the whole way.
        fault: Number of the first step that brings a real part of it in; None without error.
        runtime: On which target and with which ONNX Runtime it was looked at; empty where the recipe
            knows one alone.
        goal: What the search asks of the trial; None where nothing was searched.
        standing: Where the trial stands to it.
        looked: Number of the step whose nodes are looked at: the one at fault, or, where the goal is
            missed, the one that quantizes; None where there is none.
        points: Names of the reference points that nodes were compared at.
        nodes: The trace across that step, in the graph's order; empty where there is none.
        effects: Node -> noise to signal at the worst output when it alone is as the variant has it.
        groups: Nodes to leave in fp32, worst first.
        trials: Remedies that were tried.
        cure: The least with which every failing gate passes and the goal is met; None if none did or
            none was tried.
        cost: Of that, where a goal was missed.
        node_costs: What each node costs the pipeline that the recipe is a component of; or, where a search's goal is missed or
            a decoder fails, on the data that rank nodes. Empty where neither was measured.
        is_of_the_runtime: The first step is at fault only because ONNX Runtime optimizes its model.
    """

    recipe: Recipe
    variant: Variant
    trial: str
    chain: Chain
    breaches: tuple[tuple[str, str], ...]
    stages: tuple[Stage, ...]
    fault: int | None
    fixes: tuple[str, ...] = ()
    runtime: str = ""
    goal: SearchGoal | None = None
    standing: Standing | None = None
    looked: int | None = None
    points: tuple[str, ...] = ()
    nodes: tuple[NodeError, ...] = ()
    effects: Mapping[str, float] = field(default_factory=dict)
    groups: tuple[tuple[str, ...], ...] = ()
    trials: tuple[RemedyTrial, ...] = ()
    cure: RemedyTrial | None = None
    cost: RemedyCost | None = None
    node_costs: NodeCosts = field(default_factory=NodeCosts)
    is_of_the_runtime: bool = False

    @property
    def misses_goal(self) -> bool:
        """Whether a search's goal is missed."""
        return self.standing is not None and bool(self.standing.why)


def diagnose(
    request: Request,
    name: FoundName,
    options: RunOptions,
    events: Sequence[EventSink] = (),
    *,
    trial: str = "",
    points: int = 4,
    bisect: bool = True,
    on_trial: Callable[[RemedyTrial], None] | None = None,
) -> Diagnosis:
    """Find where a variant's error comes from.

    Args:
        name: `RECIPE:VARIANT`.
        options: How to use the machine.
        events: Receives the events of the variant's build.
        trial: Of a variant with `mode: auto`, the trial to look at; empty for the chosen one.
        points: How many reference points nodes are compared at, those with the most error first.
        bisect: Try remedies, if a gate fails or a goal is missed.
        on_trial: Called with each remedy that is tried, if given.

    Raises:
        UsageError: There is no such variant or trial.
        BuildError: A step that makes its model breaks; or a gate breaks, and no other fails.
    """
    pinned = pin_trial(request, name, trial, options, events)
    request, goal = pinned.request, pinned.goal
    loaded = load(request)
    graph = graph_of(request, loaded)
    chain = chain_of(graph, *find_variant(graph, name))
    recipe = next(each for each in loaded.recipes if each.name == chain.recipe)
    variant = next(each for each in recipe.variants if each.name == chain.variant)
    result = _built(chain, request, goal, options, events)
    chain = _where_it_ran(chain, request, result)
    if chosen := choices_of(result):  # remedies are judged, and nothing is searched for them
        request = replace(request, choices={**(request.choices or {}), **chosen})
    libraries = _libraries(chain)
    needed = [*(step.name for step in chain.models), chain.reference, *libraries]
    breaches = _breaches(result, needed)
    standing = None if goal is None else goal.standing(request, result)
    with (
        artifacts_shown(request, result, needed) as folders,
        operators_of(next((folders[each] for each in libraries), None)),
    ):
        reference = folders[chain.reference]
        stages = stages_of(chain, folders, reference)
        fault = first_at_fault(stages)
        found = Diagnosis(
            recipe,
            variant,
            pinned.trial,
            chain,
            breaches,
            stages,
            fault,
            _fixes(result),
            shown_runtime(recipe, chain.target),
            goal,
            standing,
            looked=fault,
            is_of_the_runtime=fault == 0
            and is_of_the_runtime(chain, folders[chain.models[0].name], reference, stages[-1]),
        )
        if found.misses_goal:
            found = replace(found, looked=_quantizing(variant, chain))
        looked = found.looked
        if looked is None or looked == 0:
            return found
        ratios = stages[looked].error.points
        deciding = deciding_points(ratios, variant.precision)
        worst = heapq.nlargest(points, deciding, key=lambda point: ratios[point])
        before, after = (folders[chain.models[n].name] for n in (looked - 1, looked))

        def feeds() -> Iterator[Feeds]:
            for point in read_reference(reference):
                if not worst or point.name in worst:
                    yield point.feeds

        target = nodes_on(chain.target)
        nodes = trace(before, after, feeds, target=target)
        kept = kept_nodes(variant, chain.models[looked])
        effects: Mapping[str, float] = {}
        if kept is not None and kept.alone:
            changed = {each.name for each in nodes if each.changed}
            smallest = min(feeds(), key=_elements)
            effects = output_effects(before, after, changed, smallest, target=target)
    groups = suspects(nodes, effects, math.inf if kept is None else kept.largest)
    found = replace(found, points=tuple(worst), nodes=nodes, effects=effects, groups=groups)
    tries, losses = bisect and bool(breaches or found.misses_goal), node_losses()
    in_whole = losses.in_whole(recipe)
    if kept is not None and (
        in_whole or (tries and (found.misses_goal or losses.by_gate(recipe)))
    ):
        costs = measured_losses(request, recipe, variant, options, events, of_whole=in_whole)
        found = replace(found, groups=by_loss(groups, costs.of, effects), node_costs=costs)
    if tries:
        found = _tried(request, found, options, on_trial, _scoring(chain, result))
    if found.misses_goal and found.cure is not None:
        return replace(found, cost=_cost(request, found, options, events))
    return found


def _built(
    chain: Chain,
    request: Request,
    goal: SearchGoal | None,
    options: RunOptions,
    events: Sequence[EventSink],
) -> BuildResult:
    """Build the variant, and what judges it."""
    wanted = [step.name for step in (*chain.models, *chain.gates)]
    wanted += [] if goal is None else goal.steps
    return build(replace(request, only=tuple(dict.fromkeys(wanted))), options, events, lay=False)


def _breaches(result: BuildResult, needed: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return (gate, what it found) of each gate that fails.

    A gate that breaks is none of them: it has no verdict, so no remedy can make it pass.

    Args:
        needed: Steps without whose results there is nothing to look at.

    Raises:
        BuildError: One of them has no result; or a gate breaks, and no other fails.
    """
    failures = result.report.failures
    found = tuple((each.step, each.error.what) for each in failures if each.exit_code == EXIT_GATE)
    broken = [each.error for each in failures if each.exit_code != EXIT_GATE]
    if broken and not (found and all(each in result.report.results for each in needed)):
        raise broken[0]
    return found


def _fixes(result: BuildResult) -> tuple[str, ...]:
    """Return what the gates that fail suggest, each once."""
    failing = (each.error for each in result.report.failures if each.exit_code == EXIT_GATE)
    return tuple(dict.fromkeys(error.fix for error in failing if error.fix))


def _where_it_ran(chain: Chain, request: Request, result: BuildResult) -> Chain:
    failing = [each.step for each in result.report.failures]
    chain = judged_on(chain, result.report.results, failing)
    return replace(chain, target=openable(request, result, chain.judge, chain.target))


def _libraries(chain: Chain) -> tuple[str, ...]:
    """The step that has the variant's custom operators, if there is one."""
    found = chain.models[-1].inputs.get(OPERATORS_INPUT)
    return () if found is None else (found.step,)


def _quantizing(variant: Variant, chain: Chain) -> int | None:
    """The number of the last step that can leave nodes in fp32."""
    numbers = range(len(chain.models))[::-1]
    return next((n for n in numbers if kept_nodes(variant, chain.models[n])), None)


def _scoring(chain: Chain, result: BuildResult) -> list[str]:
    """The gates that give the variant a score, which is shown next to each remedy."""
    results = result.report.results
    return [
        gate.name
        for gate in chain.gates
        if gate.name in results and "score" in results[gate.name].metrics
    ]


def _tried(
    request: Request,
    found: Diagnosis,
    options: RunOptions,
    on_trial: Callable[[RemedyTrial], None] | None,
    scoring: Sequence[str],
) -> Diagnosis:
    """The diagnosis with remedies tried on the gates that fail and the goal that is missed."""
    assert found.looked is not None
    chain, step = found.chain, found.chain.models[found.looked]
    goal = found.goal if found.misses_goal else None
    wanted = dict.fromkeys([*(name for name, _ in found.breaches), *scoring])
    if goal is not None:  # what is pasted must pass the gates, too
        wanted |= dict.fromkeys((*goal.steps, *(gate.name for gate in chain.gates)))
    trials = Trials(replace(request, only=tuple(wanted)), chain, goal, options, on_trial)
    cure = None
    kept, milder = kept_nodes(found.variant, step), milder_step(step)
    if kept is not None and found.groups:
        most = max(1, len(found.groups) - 1)  # with none quantized there is no variant left
        cure = trials.least(
            most,
            lambda k: keep_in_fp32(
                found.recipe, found.variant, kept, [n for each in found.groups[:k] for n in each]
            ),
        )
    elif milder is not None:
        cure = trials.first(do_less(found.recipe, found.variant, milder))
    return replace(found, trials=tuple(trials.tried), cure=cure)


def _cost(
    request: Request, found: Diagnosis, options: RunOptions, events: Sequence[EventSink]
) -> RemedyCost | None:
    assert found.cure is not None
    tried = as_setting(found.recipe, found.variant)
    mended = found.cure.remedy.settings[key_of(found.recipe, f"quantization.{found.variant.name}")]
    return measure_cost(request, found.recipe, (tried, mended), options, events)


def _elements(feeds: Feeds) -> int:
    return sum(array.size for array in feeds.values())
