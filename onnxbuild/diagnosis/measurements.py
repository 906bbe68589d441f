"""Measurements for a diagnosis: the step that brings the error in, nodes by their loss, the cost of a remedy."""

import json
import math
import statistics
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from onnxbuild.adapters.toolchain.environment_gc import hold
from onnxbuild.building.api import BuildResult, Request, build, graph_of
from onnxbuild.building.wiring import RunOptions, open_workspace
from onnxbuild.catalog import MODES, all_features
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.graph import Graph
from onnxbuild.core.ports import EventSink
from onnxbuild.core.recipe import Recipe, Variant
from onnxbuild.core.step import REPORT_FILE
from onnxbuild.core.target import CPU_TARGET, Target
from onnxbuild.diagnosis.alone import without_variants
from onnxbuild.diagnosis.chain import Chain
from onnxbuild.diagnosis.remedies import key_of
from onnxbuild.expansion.diagnosis_hints import NodeLosses
from onnxbuild.onnxkit.accuracy.node_trace import StageError, stage_error
from onnxbuild.onnxkit.accuracy.sample_outputs import noise_of
from onnxbuild.onnxkit.providers.open_on_target import TARGET_INPUT
from onnxbuild.onnxkit.search.goals import MeasuredTrials
from onnxbuild.onnxkit.sessions.rpc_client import host_of, runtime_facts
from onnxbuild.onnxkit.timing.ratios import Ratio
from onnxbuild.recipe.parts.parts import plain_mode

REFERENCE = "reference"
"""Name of the reference that a chain's first step, and the whole chain, are compared with."""

SANE_SHARE = 0.1
"""A step that brings in less of a variant's error than this is not where it went wrong."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One step's part in a variant's error.

    Attributes:
        step: The step.
        kind: Its kind.
        against: What its model is compared with: the step before it, or REFERENCE.
        error: Of its outputs.
        share: Its noise over that of the whole way, 0..; about 1 for all of them together.
    """

    step: str
    kind: str
    against: str
    error: StageError
    share: float


def stages_of(chain: Chain, folders: Mapping[str, Path], reference: Path) -> tuple[Stage, ...]:
    """Each step against the one before it; the last is the variant against the reference, its share 1.

    Args:
        folders: Step -> the folder of its model.
        reference: The folder of the reference artifact.

    Raises:
        StepError: A model can't be opened.
    """

    def error(before: str, after: str) -> StageError:
        return stage_error(folders.get(before), folders[after], reference, target=chain.target)

    names = [step.name for step in chain.models]
    total = error("", names[-1])
    stages = []
    for number, step in enumerate(chain.models):
        before = names[number - 1] if number else ""
        found = total if len(names) == 1 else error(before, step.name)
        share = _share(found.ratio, total.ratio)
        stages.append(Stage(step.name, step.kind, before or REFERENCE, found, share))
    return (*stages, Stage(names[-1], "", REFERENCE, total, 1.0))


def is_of_the_runtime(chain: Chain, folder: Path, reference: Path, total: Stage) -> bool:
    """Return whether a chain's first model loses nearly all of its error when it is run node by node.

    Then the model is right, and ONNX Runtime's own optimizations bring the error in.

    Args:
        folder: Of its first model.
        reference: The folder of the reference artifact.

    Raises:
        StepError: The model can't be opened.
    """
    alone = stage_error(None, folder, reference, target=chain.target, as_written=True)
    return _share(alone.ratio, total.error.ratio) < SANE_SHARE


def first_at_fault(stages: Sequence[Stage]) -> int | None:
    """The number of the first step that brings a real part of the error in; None without error."""
    if stages[-1].error.ratio == 0.0:
        return None
    shares = [stage.share for stage in stages[:-1]]
    return next((n for n, share in enumerate(shares) if share >= SANE_SHARE), None)


def _share(part: float, whole: float) -> float:
    if math.isinf(part):
        return 1.0
    return 0.0 if math.isinf(whole) or whole == 0.0 else part / whole


@contextmanager
def artifacts_shown(
    request: Request, result: BuildResult, steps: Iterable[str]
) -> Iterator[Mapping[str, Path]]:
    """Step -> a folder that shows its artifact, to be written into; gone afterwards.

    Of a step with several outputs it is the model; steps without a result are left out.
    """
    workspace = open_workspace(request.project, result.store, make=False)
    try:
        with tempfile.TemporaryDirectory(prefix="onnxbuild-diagnose-") as scratch:
            folders = {}
            for number, step in enumerate(steps):
                artifact = artifact_of(result, step)
                if artifact is None:
                    continue
                folders[step] = Path(scratch) / str(number)
                _show(folders[step], workspace.store.paths(artifact), artifact)
            yield folders
    finally:
        workspace.close()


def artifact_of(result: BuildResult, step: str) -> Artifact | None:
    """Return a step's artifact: its model, or its first output; None if it made nothing."""
    made = result.report.results.get(result.graph.resolve(step))
    if made is None or not made.outputs:
        return None
    return made.outputs.get("model") or next(iter(made.outputs.values()))


def size_bytes(artifact: Artifact) -> int:
    """Size of all its files."""
    return sum(digest.size_bytes for _, digest in artifact.files)


def _show(folder: Path, blobs: Mapping[str, Path], artifact: Artifact) -> None:
    for path, _ in artifact.files:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(blobs[path].absolute())


@dataclass(frozen=True, slots=True)
class NodeCosts:
    """Cost of few bits in each node alone.

    Attributes:
        of: Node -> its cost; those that were not measured alone are left out.
        ranked_by: `kl`, in nats, or the user's metric, whose drop it is, or a distance of outputs.
        nodes: How many nodes get few bits.
    """

    of: Mapping[str, float] = field(default_factory=dict)
    ranked_by: str = ""
    nodes: int = 0


def node_losses() -> NodeLosses:
    """Return how nodes are ranked."""
    hints = (each.diagnosis.losses for each in all_features())
    return next(each for each in hints if each is not None)


def measured_losses(
    request: Request,
    recipe: Recipe,
    variant: Variant,
    options: RunOptions,
    events: Sequence[EventSink],
    *,
    of_whole: bool = False,
) -> NodeCosts:
    """Return what few bits in each node alone cost, by the variant's table of sensitive nodes.

    The table is a cached step; a variant that keeps its most sensitive nodes has it already.

    Args:
        variant: The variant; of a search, as the trial that it is.
        options: How to use the machine.
        events: Receives the events of the build.
        of_whole: What they cost the pipeline that the recipe is a component of, which has a measure.

    Returns: Empty where there is no such table: the mode has none, or it can't be made.
    """
    losses = node_losses()
    if not losses.can_rank(recipe) or MODES[variant.mode].sensitivity is None:
        return NodeCosts()
    wanted = {**losses.settings, **(losses.of_whole if of_whole else {})}
    own = {key_of(recipe, key): value for key, value in wanted.items()}
    settings = {**(request.settings or {}), **own}
    asked = replace(request, settings=settings, only=())
    graph = graph_of(asked)
    names = (recipe.name, variant.name)
    parts = next(each.parts for each in graph.deliverables if (each.recipe, each.name) == names)
    steps = (ref.step for ref, _ in parts)
    table = next((name for name in steps if graph.steps[name].kind == losses.kind), "")
    if not table:
        return NodeCosts()
    result = build(replace(asked, only=(table,)), options, events, lay=False)
    with artifacts_shown(asked, result, [table]) as folders:
        if table not in folders:
            return NodeCosts()
        report = json.loads((folders[table] / REPORT_FILE).read_text("utf-8"))
    rows = [node for node in report["nodes"] if node["measured"]]
    ranked = report["ranked_by"]
    found = {node["name"]: _loss(node, by_noise=ranked == "sqnr_db") for node in rows}
    return NodeCosts(found, ranked, len(report["nodes"]))


def by_loss(
    groups: Sequence[tuple[str, ...]], losses: Mapping[str, float], effects: Mapping[str, float]
) -> tuple[tuple[str, ...], ...]:
    """Groups of nodes in the order of what they cost; those without a number come last, as they are.

    The table says nothing of nodes such as LSTM. What such a node does to the outputs of a reference
    input is taken for its cost, in the table's unit by the median of the nodes that have both.

    Args:
        groups: Worst first by another measure.
        losses: Node -> its cost.
        effects: Node -> what it alone does to the outputs, in any unit.
    """
    both = [losses[name] / effects[name] for name in losses if effects.get(name, 0.0) > 0.0]
    unit = statistics.median(both) if both else 0.0
    costs = {
        **({name: unit * each for name, each in effects.items()} if unit > 0 else {}),
        **losses,
    }

    def cost(group: tuple[str, ...]) -> float:
        return max((costs[name] for name in group if name in costs), default=-float("inf"))

    return tuple(sorted(groups, key=cost, reverse=True))


def _loss(node: Mapping[str, float], *, by_noise: bool) -> float:
    if by_noise:
        return noise_of(node["sqnr_db"])
    drop = node.get("drop")
    return float(drop) if drop is not None else 1.0 - float(node["cosine_mean"])


_FP32, _TRIED, _MENDED = "fp32", "tried", "mended"


@dataclass(frozen=True, slots=True)
class RemedyCost:
    """Sizes in bytes, and speeds as ratios of times: above 1 where the mended one is faster.

    Attributes:
        fp32_bytes: Of the model that is quantized.
        tried_bytes: Of the variant as it was.
        mended_bytes: Of the variant with the remedy.
        over_fp32: Speed of the mended variant relative to fp32; None where it was not measured.
        over_tried: Compared with the variant before the change.
    """

    fp32_bytes: int
    tried_bytes: int
    mended_bytes: int
    over_fp32: Ratio | None
    over_tried: Ratio | None


def measure_cost(
    request: Request,
    recipe: Recipe,
    variants: tuple[str, str],
    options: RunOptions,
    events: Sequence[EventSink] = (),
) -> RemedyCost | None:
    """Build the recipe's benchmark of three variants alone; what is built already is not built again.

    Args:
        variants: As tried and as mended, each as JSON below `quantization: {NAME: ...}`.
        options: How to use the machine.
        events: Receives the events of the build.

    Returns: None where one can't be built.
    """
    quantization = {
        _FP32: plain_mode().name,
        _TRIED: json.loads(variants[0]),
        _MENDED: json.loads(variants[1]),
    }
    replaced = key_of(recipe, "quantization")
    kept = {
        key: value
        for key, value in (request.settings or {}).items()
        if not f"{key}.".startswith(("quantization.", f"{replaced}."))
    }
    alone = (each.side_by_side.alone for each in all_features() if each.side_by_side)
    settings = {
        **kept,
        replaced: json.dumps(quantization),
        **without_variants(recipe),  # which name variants that are replaced
        **{key: value for each in alone for key, value in each.items()},
    }
    step = _measuring_step(graph_of(replace(request, settings=settings, only=())), recipe)
    asked = replace(request, settings=settings, only=(step,))
    result = build(asked, options, events, lay=False)
    if step not in result.graph.steps:
        return None
    inputs = result.graph.steps[step].inputs
    sizes = {}
    for name in (_FP32, _TRIED, _MENDED):
        made = artifact_of(result, inputs[f"model/{name}"].step)
        if made is None:
            return None
        sizes[name] = size_bytes(made)
    with artifacts_shown(asked, result, [step]) as folders:
        ratios = _ratios(folders.get(step))
    return RemedyCost(sizes[_FP32], sizes[_TRIED], sizes[_MENDED], *ratios)


def _measuring_step(graph: Graph, recipe: Recipe) -> str:
    """Return the name of the step that measures the variants side by side on the first target."""
    kinds = {each.side_by_side.kind for each in all_features() if each.side_by_side}
    (mended,) = (
        each for each in graph.deliverables if (each.recipe, each.name) == (recipe.name, _MENDED)
    )
    steps = mended.measured_by[recipe.targets[0].name]
    return next(name for name in steps if graph.steps[graph.resolve(name)].kind in kinds)


def _ratios(folder: Path | None) -> tuple[Ratio | None, Ratio | None]:
    if folder is None:
        return None, None
    report: dict[str, Any] = json.loads((folder / REPORT_FILE).read_text("utf-8"))
    points = [point["point"] for point in report["points"]]
    if not points:
        return None, None
    measured = MeasuredTrials(folder, points, [_FP32, _TRIED, _MENDED])
    return measured.ratio(_FP32, _MENDED), measured.ratio(_TRIED, _MENDED)


def openable(request: Request, result: BuildResult, judge: str, target: Target) -> Target:
    """The target as its gate ran on it: what of its chain loads, in its environment on this machine.

    An environment of a list is kept from being removed until this process ends.

    Args:
        judge: The step that judged the variant there.
        target: As the recipe has it.
    """
    target = _usable(result, judge, target)
    if target.environment is None:
        return target
    workspace = open_workspace(request.project, result.store, make=False)
    known = workspace.fingerprints.environments
    try:
        path = known.interpreter(target.environment)
        if not target.environment.python:
            hold(known.folder(target.environment))
    finally:
        workspace.close()
    return replace(target, environment=replace(target.environment, interpreter=path))


def _usable(result: BuildResult, judge: str, target: Target) -> Target:
    found = result.graph.steps[judge].inputs.get(TARGET_INPUT)
    made = None if found is None else result.report.results.get(found.step)
    if made is None or not made.metrics["loads"]:
        return target  # which says itself what does not load
    loads = made.metrics["loads"]
    return replace(target, chain=tuple(link for link in target.chain if link.provider in loads))


def nodes_on(target: Target) -> Target:
    """Return where nodes are compared one by one: on the CPU, or in the target's own environment.

    Args:
        target: As `openable` gives it.
    """
    return CPU_TARGET if target.environment is None else target


def shown_runtime(recipe: Recipe, target: Target) -> str:
    """Return target and ONNX Runtime in words; empty where all targets use the same ONNX Runtime.

    Args:
        target: As `openable` gives it.

    Raises:
        StepError: The environment's interpreter can't be started.
    """
    if not any(each.environment for each in recipe.targets):
        return ""
    if target.environment is None:
        return (
            f"target '{target.name}', with {runtime_facts()['package']} of onnxbuild's environment"
        )
    facts = host_of(target.environment.interpreter, "").call(runtime_facts)
    return f"target '{target.name}', with {facts['package']} of {target.environment}"
