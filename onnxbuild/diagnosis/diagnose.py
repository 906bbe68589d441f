"""A variant's diagnosis: which gates fail, which step and nodes bring the error in, what mends it."""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from onnxbuild.api import BuildResult, Request, build, choices_of, graph_of, load
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.ports import EventSink
from onnxbuild.core.recipe import Recipe, Variant
from onnxbuild.diagnosis.chain import Chain, chain_of, find_variant
from onnxbuild.diagnosis.pinned import pin_trial
from onnxbuild.diagnosis.remedies import keep_in_fp32, keeps_nodes, optimize_less, suspects
from onnxbuild.diagnosis.stages import Stage, first_at_fault, stages_of
from onnxbuild.diagnosis.trials import Trial, Trials, is_broken
from onnxbuild.onnxkit.feeds import Feeds
from onnxbuild.onnxkit.own_errors import output_effects
from onnxbuild.onnxkit.reference_files import read_reference
from onnxbuild.onnxkit.tracing import NodeError, trace
from onnxbuild.wiring import RunOptions, open_workspace


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found.

    Attributes:
        recipe: The variant's recipe.
        variant: The variant; of a search, one of its trials.
        trial: Which; empty where nothing was searched.
        chain: The variant's way.
        breaches: (gate, what it found) of each gate that fails.
        stages: Each step's part in the error; the last is the whole way.
        fault: Number of the first step that brings a real part of it in; None without error.
        points: Names of the reference points that nodes were compared at.
        nodes: The trace across that step, in the graph's order; empty where there is none.
        effects: Node -> noise to signal at the worst output when it alone is as the variant has it.
        groups: Nodes to leave in fp32, worst first.
        trials: Remedies that were tried.
        cure: The least that makes every failing gate pass; None if none did or none was tried.
    """

    recipe: Recipe
    variant: Variant
    trial: str
    chain: Chain
    breaches: tuple[tuple[str, str], ...]
    stages: tuple[Stage, ...]
    fault: int | None
    points: tuple[str, ...] = ()
    nodes: tuple[NodeError, ...] = ()
    effects: Mapping[str, float] = field(default_factory=dict)
    groups: tuple[tuple[str, ...], ...] = ()
    trials: tuple[Trial, ...] = ()
    cure: Trial | None = None


def diagnose(
    request: Request,
    name: str,
    options: RunOptions,
    events: Sequence[EventSink] = (),
    *,
    trial: str = "",
    points: int = 4,
    bisect: bool = True,
    tell: Callable[[Trial], None] | None = None,
) -> Diagnosis:
    """Find where a variant's error comes from.

    Args:
        request: Its recipe.
        name: `RECIPE:VARIANT`.
        options: How to use the machine.
        events: Told of the variant's build.
        trial: Of a variant with `mode: auto`, the trial to look at; empty for the chosen one.
        points: How many reference points nodes are compared at, those with the most error first.
        bisect: Try remedies, if a gate fails.
        tell: Told of each remedy that is tried, if given.

    Raises:
        UsageError: There is no such variant or trial.
        BuildError: A step that makes its model breaks.
    """
    request, trial = pin_trial(request, name, trial, options, events)
    loaded = load(request)
    graph = graph_of(request, loaded)
    chain = chain_of(graph, *find_variant(graph, name))
    recipe = next(each for each in loaded.recipes if each.name == chain.recipe)
    variant = next(each for each in recipe.variants if each.name == chain.variant)
    wanted = [step.name for step in (*chain.models, *chain.gates)]
    result = build(replace(request, only=tuple(wanted)), options, events)
    sessions = {n: choice for n, choice in choices_of(result).items() if n.endswith("/session")}
    if sessions:  # remedies are judged, and nothing is searched for them
        request = replace(request, choices={**(request.choices or {}), **sessions})
    needed = [*(step.name for step in chain.models), chain.reference]
    if is_broken(result) and not all(each in result.report.results for each in needed):
        raise result.report.failures[0].error
    breaches = tuple((each.step, each.error.what) for each in result.report.failures)
    with _models(request, result, needed) as folders:
        reference = folders[chain.reference]
        stages = stages_of(chain, folders, reference)
        fault = first_at_fault(stages)
        found = Diagnosis(recipe, variant, trial, chain, breaches, stages, fault)
        if fault is None or fault == 0:
            return found
        ratios = stages[fault].error.points
        worst = heapq.nlargest(points, ratios, key=lambda point: ratios[point])
        before, after = (folders[chain.models[n].name] for n in (fault - 1, fault))

        def feeds() -> Iterator[Feeds]:
            for point in read_reference(reference):
                if not worst or point.name in worst:
                    yield point.feeds

        nodes = trace(before, after, feeds)
        kind = chain.models[fault].kind
        effects: Mapping[str, float] = {}
        if keeps_nodes(kind) and kind != "convert-fp16":
            changed = {each.name for each in nodes if each.changed}
            effects = output_effects(before, after, changed, min(feeds(), key=_elements))
    groups = suspects(kind, nodes, effects)
    found = replace(found, points=tuple(worst), nodes=nodes, effects=effects, groups=groups)
    if not bisect or not breaches:
        return found
    return _tried(request, found, options, tell)


def _tried(
    request: Request,
    found: Diagnosis,
    options: RunOptions,
    tell: Callable[[Trial], None] | None,
) -> Diagnosis:
    """The diagnosis with remedies tried on the gates that fail."""
    assert found.fault is not None
    chain, step = found.chain, found.chain.models[found.fault]
    failing = tuple(name for name, _ in found.breaches)
    request = replace(request, only=failing)
    trials = Trials(request, f"{chain.recipe}:{chain.variant}/validate", options, tell)
    cure = None
    if keeps_nodes(step.kind) and found.groups:
        most = max(1, len(found.groups) - 1)  # with none quantized there is no variant left
        cure = trials.least(
            most,
            lambda k: keep_in_fp32(
                found.recipe, found.variant, step, [n for each in found.groups[:k] for n in each]
            ),
        )
    elif step.kind == "optimize":
        cure = trials.first(optimize_less(found.recipe, found.variant))
    return replace(found, trials=tuple(trials.tried), cure=cure)


def _elements(feeds: Feeds) -> int:
    return sum(array.size for array in feeds.values())


@contextmanager
def _models(
    request: Request, result: BuildResult, steps: Sequence[str]
) -> Iterator[Mapping[str, Path]]:
    """Folders that show the steps' artifacts, to be written into; gone afterwards."""
    workspace = open_workspace(request.project, result.store, make=False)
    try:
        with tempfile.TemporaryDirectory(prefix="onnxbuild-diagnose-") as scratch:
            folders = {}
            for number, step in enumerate(steps):
                outputs = result.report.results[result.graph.resolve(step)].outputs
                artifact = outputs.get("model") or outputs["reference"]
                folders[step] = Path(scratch) / str(number)
                _show(folders[step], workspace.store.paths(artifact), artifact)
            yield folders
    finally:
        workspace.close()


def _show(folder: Path, blobs: Mapping[str, Path], artifact: Artifact) -> None:
    for path, _ in artifact.files:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(blobs[path].absolute())
