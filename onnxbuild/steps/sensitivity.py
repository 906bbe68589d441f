"""Measure the effect of few bits in each node, and in each block of nodes, over the user's data."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from onnxbuild.core.errors import NotApplicableError, StepError
from onnxbuild.core.params import option
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import REPORT_FILE, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.accuracy.sample_outputs import data_of, projection_of
from onnxbuild.onnxkit.accuracy.user_metric import UserMetric
from onnxbuild.onnxkit.calibrate.ranges import RANGES_FILE
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.greedy import roles_of
from onnxbuild.onnxkit.data.labelled_data import labelled_batches
from onnxbuild.onnxkit.data.user_code import own_copy
from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.loaders.decoding import whole_text
from onnxbuild.onnxkit.model.model_files import load_model, save_model
from onnxbuild.onnxkit.optimize.held_constants import folded_constants
from onnxbuild.onnxkit.pipelines.built_in import own_code
from onnxbuild.onnxkit.pipelines.calls import RunPipeline
from onnxbuild.onnxkit.quantize.blockwise import BlockGrid
from onnxbuild.onnxkit.quantize.static_quantizer import fold_beta
from onnxbuild.onnxkit.report_page.blocks import Bar, Bars
from onnxbuild.onnxkit.report_page.charts import chart_file
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sensitivity.static_rounding import StaticRounding, StaticScheme
from onnxbuild.onnxkit.sessions.open import open_session

if TYPE_CHECKING:
    from onnxbuild.onnxkit.sensitivity.dynamic_rounding import Rounding
    from onnxbuild.onnxkit.sensitivity.losses import GatedLosses, GatedModel, Outputs, Ranking

PLOT_FILE = "plot.svg"
_SPILL = "rounded"
_PLOTTED = 40
_TOLD = 3
_LEAST_SETTINGS = 8
_NOTHING = 1e-7
"""1 - cosine of less is rounding of float32."""


@dataclass(frozen=True, slots=True)
class SensitivityOptions:
    """Error that 8 bits in each node add, for `keep_most_sensitive` and as a table."""

    table: bool = option(
        False,
        help="write sensitivity.json and sensitivity-plot.svg to the folder of every variant in 8 "
        "bits or fewer, and print the worst nodes in the run's output",
    )
    rank_by: Literal["cosine", "metric"] = option(
        "cosine",
        help="what ranks nodes: cosine, how far they turn the outputs over `fidelity.data`; metric, "
        "the drop of `evaluate.metric` over `evaluate.data`, or, of a component, what they cost the `pipeline`: the KL "
        "divergence of `run: greedy`, the drop of its `metric`. Without `fidelity.data`, what they cost the pipeline, or a "
        "decoder's prompts (`generate`), is taken by itself",
    )
    samples: int = option(
        8, help="items of the data that are used: each is run once a node", minimum=1
    )
    runs: int = option(
        1024,
        help="maximum runs of the model; if nodes and blocks times samples exceed it, blocks are "
        "measured first and then only the nodes of the worst",
        minimum=1,
    )


@dataclass(frozen=True, slots=True)
class SensitivityParams:
    """Parameters of a sensitivity analysis.

    Attributes:
        data: A callable that yields feeds: input name -> array; with a metric, (feeds, labels).
        project: A callable: (outputs, feeds) -> (samples, ...); None takes all outputs.
        inputs: What the recipe declares.
        axes: Likewise; labelled data of all samples are cut into batches that they take.
        samples: Items of the data that are used: each is run once a node and once a block.
        runs: Most runs of the model; eight sets of nodes are measured at least.
        metric: The user's, (outputs, labels) -> float, by whose drop nodes are ranked; None ranks
            by cosine.
        static: How `mode: static` rounds, with the ranges of the input `calibration`; None rounds
            as `mode: dynamic` does.
        weights: How `mode: weight_only` rounds; None likewise.
        logits: With the input `tokens`, PyTorch's continuations of prompts, the output by whose KL divergence on these
            texts nodes are ranked; `data` is not read then.
        whole: The pipeline of all components, by whose outputs nodes are ranked: by `metric`, or, without one, by the KL
            divergence of greedy decoding; None for the model's own outputs.
        component: Which of them the model is.
    """

    data: Entrypoint | None
    project: Entrypoint | None
    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]
    samples: int
    runs: int = 1024
    metric: Entrypoint | None = None
    static: StaticScheme | None = None
    weights: BlockGrid | None = field(default=None, metadata={"sparse": True})
    logits: str = field(default="", metadata={"sparse": True})
    whole: RunPipeline | None = field(default=None, metadata={"sparse": True})
    component: str = field(default="", metadata={"sparse": True})

    @property
    def by_divergence(self) -> bool:
        """Whether nodes are ranked by the KL divergence of the next token's distributions."""
        return bool(self.logits) or (self.whole is not None and self.metric is None)


def run(context: StepContext) -> Outcome:
    """Write report.json, blocks and nodes by falling loss, and a plot.

    All nodes are in one graph, each with a gate, so that one session serves them all: the time is
    (nodes + blocks + 2) x samples runs of a graph twice the model's work, `runs` of them at most.

    Raises:
        StepError: There is no node to quantize, the data yields nothing, or the metric gives no
            finite number.
    """
    from onnxbuild.onnxkit.model.blocks import find_blocks
    from onnxbuild.onnxkit.sensitivity.dynamic_rounding import add_gates
    from onnxbuild.onnxkit.sensitivity.losses import rank

    params: SensitivityParams = context.params
    model = load_model(folded_constants(context), weights="mapped")
    nodes, rounding = _gates(context, model)
    if not nodes:
        raise NotApplicableError(
            "the model has no MatMul, Gemm, Conv or Gather with constant weights: nothing to measure"
            if params.static is None
            else "no node has calibrated ranges and an operator that is quantized: nothing to "
            "measure",
            where=context.where,
            fix="take the variant that asks for it out of `quantization`, or `table: true` out of "
            "`sensitivity`",
        )
    names = [name for name, _ in nodes]
    blocks = find_blocks(model, names)
    add_gates(model, names, rounding)
    save_model(model, context.scratch / "gated")
    del model, rounding  # which holds the model's constants
    (context.scratch / _SPILL).unlink(missing_ok=True)
    losses = _losses(context, len(nodes))
    together = losses.of(range(len(nodes)))
    settings = max(_LEAST_SETTINGS, params.runs // max(1, params.samples) - 2)
    ranking = rank(losses.of, blocks, names, settings)
    folder = context.output("sensitivity")
    unmeasured = sum(loss is None for _, _, loss in ranking.nodes)
    report = {
        "samples": losses.samples,
        "runs": losses.runs,
        "rounding": "static" if params.static else "weight_only" if params.weights else "dynamic",
        "ranked_by": _ranked_by(params, by_noise=losses.by_noise),
        **({"score": losses.score} if params.metric else {}),
        "all": together.as_json(),
        "blocks": [
            {"name": block.name, "nodes": len(block.nodes), **loss.as_json()}
            for block, loss in ranking.blocks
        ],
        "nodes": [
            {
                "name": names[number],
                "op_type": nodes[number][1],
                "block": block.name,
                "measured": loss is not None,
                **(loss.as_json() if loss else {}),
            }
            for number, block, loss in ranking.nodes
        ],
    }
    write_report(folder, report)
    measure = _measure_name(params, by_noise=losses.by_noise)
    svg = _plot(params, measure, ranking, names, losses.samples)
    (folder / PLOT_FILE).write_text(svg, encoding="utf-8")
    worst, _, how = ranking.nodes[0]
    assert how is not None  # of the worst block one node at least is measured
    return Outcome(
        metrics={
            "nodes": len(nodes),
            "unmeasured_nodes": unmeasured,
            "blocks": len(ranking.blocks),
            "samples": losses.samples,
            **(
                {"cosine_mean_all": together.fidelity.cosine_mean}
                if together.fidelity is not None
                else {}
            ),
            "most_sensitive": names[worst] if how.size > _NOTHING else "",
        },
        notes=_notes(measure, ranking, names, unmeasured),
    )


def _gates(context: StepContext, model: onnx.ModelProto) -> tuple[list[tuple[str, str]], Rounding]:
    """(name, operator type) of the nodes to measure, and how each is rounded."""
    from onnxbuild.onnxkit.sensitivity.dynamic_rounding import DynamicRounding, quantizable_nodes

    scheme: StaticScheme | None = context.params.static
    spill = context.scratch / _SPILL
    if context.params.weights is not None:
        from onnxbuild.onnxkit.sensitivity.weight_rounding import WeightRounding, rounded_in_blocks

        weighted = rounded_in_blocks(model)
        named = [(each.node.name, each.node.op_type) for each in weighted]
        return named, WeightRounding(weighted, context.params.weights, spill)
    if scheme is None:
        found = quantizable_nodes(model)
        return [(each.name, each.op_type) for each in found], DynamicRounding(model, found, spill)
    text = (context.input("calibration") / RANGES_FILE).read_text("utf-8")
    calibration = json.loads(text)
    misread = fold_beta(model)
    ranges, unbounded = calibration["ranges"], calibration["unbounded"]
    rounding = StaticRounding(model, scheme, ranges, unbounded, spill)
    return [(each.name, each.op_type) for each in rounding.nodes(model, misread)], rounding


def _losses(context: StepContext, count: int) -> GatedLosses:
    from onnxbuild.onnxkit.sensitivity.losses import GatedLosses
    from onnxbuild.onnxkit.sensitivity.whole import GatedWhole

    params: SensitivityParams = context.params
    if params.whole is None:
        return GatedLosses(_on_feeds(context), count, context.where)
    gated = GatedWhole(
        context,
        params.whole,
        params.component,
        context.scratch / "gated",
        metric=params.metric,
        samples=params.samples,
    )
    return GatedLosses(gated, count, context.where)


def _on_feeds(context: StepContext) -> GatedModel:
    from onnxbuild.onnxkit.sensitivity.losses import GatedModel, LogitsDivergence

    params: SensitivityParams = context.params
    feeds: list[Feeds] = []
    labels: list[object] = []
    divergence = LogitsDivergence(params.logits) if "tokens" in context.input_names else None
    if divergence is not None:
        feeds += _texts(context)[: params.samples]
    elif params.metric is None:
        assert params.data is not None
        feeds += data_of(context, params.data, params.inputs, params.samples)
    else:
        assert params.data is not None
        for item, truth in labelled_batches(
            context, params.data, params.inputs, params.axes, params.samples
        ):
            feeds.append(item)
            labels.append(truth)
    if not feeds:
        raise StepError(
            f"{params.data.target if params.data else 'generate'} yields nothing to compare on",
            where=context.where,
            fix="yield at least one item",
        )
    metric = None if params.metric is None else UserMetric(context, params.metric)

    def score(outputs: Outputs) -> float:
        assert metric is not None
        return metric.score(outputs, list(map(own_copy, labels)))

    return GatedModel(
        open_session(context.scratch / "gated", lean=True, where=context.where),
        feeds,
        project=projection_of(context, params.project),
        target=params.project.target if params.project else "",
        score=score if metric is not None else divergence,
        where=context.where,
    )


def _texts(context: StepContext) -> list[Feeds]:
    """Prompts with PyTorch's continuations, each as one first call."""
    expected = json.loads((context.input("tokens") / REPORT_FILE).read_text("utf-8"))
    params: SensitivityParams = context.params
    decoder = roles_of(params.inputs).decoder(params.logits)
    texts = zip(expected["prompts"], expected["tokens"], strict=True)
    return [whole_text(decoder, np.array([*prompt, *tokens])) for prompt, tokens in texts]


def _ranked_by(params: SensitivityParams, *, by_noise: bool) -> str:
    if params.metric:
        return params.metric.target
    if params.by_divergence:
        return "kl"
    return "sqnr_db" if by_noise else "cosine_mean"


def _measure_name(params: SensitivityParams, *, by_noise: bool) -> str:
    if params.metric:
        return f"drop of {params.metric.target}"
    if params.by_divergence:
        return "KL divergence, nats"
    return "noise to signal" if by_noise else "1 - mean cosine"


def _plot(
    params: SensitivityParams, measure: str, ranking: Ranking, names: list[str], samples: int
) -> str:
    """Blocks of several nodes, then nodes, the greatest loss first in each."""
    bars = [
        Bar(f"[block] {block.name}", max(0.0, loss.size))
        for block, loss in ranking.blocks
        if len(block.nodes) > 1
    ][: _PLOTTED // 2]
    bars += [
        Bar(names[number], max(0.0, loss.size))
        for number, _, loss in ranking.nodes[:_PLOTTED]
        if loss
    ]
    bits = "few bits" if params.static and "16" in params.static.activation_type else "8 bits"
    bits = f"{params.weights.bits} bits" if params.weights else bits
    title = f"{measure} with one block, or one node, in {bits}, {samples} samples"
    return chart_file(Bars(title, ("node", measure), tuple(bars)))


def _notes(measure: str, ranking: Ranking, names: list[str], unmeasured: int) -> tuple[str, ...]:
    """The worst nodes and blocks, and what was not measured."""
    nodes = [(names[number], loss) for number, _, loss in ranking.nodes]
    blocks = [(block.name, loss) for block, loss in ranking.blocks if len(block.nodes) > 1]
    found = [
        f"most sensitive {things} of {len(ranked)} ({measure}): "
        + ", ".join(f"{name} {loss.size:.3g}" for name, loss in ranked[:_TOLD] if loss)
        for things, ranked in (("blocks", blocks), ("nodes", nodes))
        if ranked
    ]
    if unmeasured:
        found.append(
            f"{unmeasured} of {len(nodes)} nodes were not measured alone, their blocks were: raise "
            "`sensitivity: {runs: ...}` to measure them"
        )
    return tuple(found)


def _entrypoints(params: SensitivityParams) -> tuple[Entrypoint, ...]:
    given = (params.data, params.project, params.metric)
    whole = () if params.whole is None else own_code(params.whole.run)
    return (*(each for each in given if each is not None), *whole)


KIND = StepKind(
    name="sensitivity",
    version=11,
    params=SensitivityParams,
    inputs=("model", "calibration?", "tokens?", "model/*", "reference?"),
    outputs={"sensitivity": "sensitivity"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
    host_bound=True,
    user_code=True,
    entrypoints=_entrypoints,
)
