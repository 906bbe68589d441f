"""What 8 bits in each node alone do to the outputs, over the user's data."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.bars import bars_svg
from onnxbuild.onnxkit.feeds import Feeds
from onnxbuild.onnxkit.fidelity_data import data_of, projection_of
from onnxbuild.onnxkit.gates import GATES, add_gates, gate_settings, quantizable_nodes
from onnxbuild.onnxkit.model_files import load_model, save_model
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sample_vectors import Fidelity, compare_vectors, sample_vectors
from onnxbuild.onnxkit.sessions import open_session

if TYPE_CHECKING:
    import numpy as np

PLOT_FILE = "sensitivity.svg"
_PLOTTED = 40
_NOTHING = 1e-7
"""1 - cosine of less is rounding of float32."""


@dataclass(frozen=True, slots=True)
class SensitivityParams:
    """All that steers it.

    Attributes:
        data: A callable that yields feeds: input name -> array.
        project: A callable: (outputs, feeds) -> (samples, ...); None takes all outputs.
        inputs: What the recipe declares.
        samples: Items of the data that are used: each is run once a node.
    """

    data: Entrypoint
    project: Entrypoint | None
    inputs: tuple[DummyInput, ...]
    samples: int


def run(context: StepContext) -> Outcome:
    """Write report.json, the nodes by falling loss, and a plot.

    All nodes are in one graph, each with a gate, so that one session serves them all: the time is
    (nodes + 2) x samples runs of a graph twice the model's work.

    Raises:
        StepError: There is no node to quantize, or the data yields nothing.
    """
    params: SensitivityParams = context.params
    model = load_model(context.input("model"))
    nodes = quantizable_nodes(model)
    if not nodes:
        raise StepError(
            "the model has no MatMul, Gemm or Conv with constant weights: nothing to measure",
            where=context.where,
            fix="take the variant that asks for it out of `quantization`",
        )
    add_gates(model, nodes)
    save_model(model, context.scratch / "gated")
    del model
    session = open_session(context.scratch / "gated", where=context.where)
    project = projection_of(context, params.project)
    target = params.project.target if params.project else ""
    feeds = list(data_of(context, params.data, params.inputs, params.samples))

    def vectors(gates: np.ndarray) -> list[np.ndarray]:
        return list(
            sample_vectors(
                session, _gated(feeds, gates), project=project, target=target, where=context.where
            )
        )

    settings = gate_settings(len(nodes))
    exact = vectors(next(settings))
    found = [compare_vectors(exact, vectors(gates), context.where) for gates in settings]
    *alone, together = found
    ranked = sorted(
        zip(nodes, alone, strict=True), key=lambda pair: (pair[1].cosine_mean, pair[0].name)
    )
    report = {
        "samples": together.samples,
        "all": _loss(together),
        "nodes": [
            {"name": node.name, "op_type": node.op_type, **_loss(each)} for node, each in ranked
        ],
    }
    folder = context.output("sensitivity")
    write_report(folder, report)
    bars = [(node.name, max(0.0, 1 - each.cosine_mean)) for node, each in ranked[:_PLOTTED]]
    title = f"1 - mean cosine with one node in 8 bits, {together.samples} samples"
    (folder / PLOT_FILE).write_text(bars_svg(title, bars), encoding="utf-8")
    worst, how = ranked[0]
    return Outcome(
        metrics={
            "nodes": len(nodes),
            "samples": together.samples,
            "cosine_mean_all": together.cosine_mean,
            "most_sensitive": worst.name if 1 - how.cosine_mean > _NOTHING else "",
        }
    )


def _gated(feeds: Sequence[Feeds], gates: np.ndarray) -> list[Feeds]:
    return [dict(itertools.chain(item.items(), [(GATES, gates)])) for item in feeds]


def _loss(found: Fidelity) -> dict[str, object]:
    told = asdict(found)
    return {key: told[key] for key in ("cosine_mean", "cosine_min", "worst", "sqnr_db")}


KIND = StepKind(
    name="sensitivity",
    version=1,
    params=SensitivityParams,
    inputs=("model",),
    outputs={"sensitivity": "sensitivity"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
    host_bound=True,
    user_code=True,
    entrypoints=lambda params: (params.data, *((params.project,) if params.project else ())),
)
