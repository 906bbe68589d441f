"""Replay an 8-bit model's sums as a CPU without VNNI or AMX adds them up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.data.calibration_data import FeedSource
from onnxbuild.onnxkit.model.model_files import load_model
from onnxbuild.onnxkit.reports import write_report

if TYPE_CHECKING:
    from onnxbuild.onnxkit.saturation.replay import Saturation

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class SaturationParams:
    """Parameters of a replay.

    Attributes:
        data: A callable that yields feeds, files that hold them, or the dummy inputs.
        samples: How many feeds are used at most.
        seed: Of random feeds.
        variant: Its name, for messages.
    """

    data: Entrypoint
    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]
    samples: int
    seed: int
    variant: str


def run(context: StepContext) -> Outcome:
    """Write report.json: of each node whose sums can saturate, the share that does on the data.

    Raises:
        StepError: The data yields nothing, or not what the recipe declares.
    """
    from onnxbuild.onnxkit.saturation.replay import replay

    params: SaturationParams = context.params
    source = FeedSource(params.data, params.inputs, params.axes, params.seed)
    found, samples = replay(
        load_model(context.input("model"), weights="mapped"),
        source.feeds(context, params.samples),
        scratch=context.scratch,
        where=context.where,
    )
    if found and not samples:
        raise source.nothing(params.samples, context.where)
    saturating = sorted((each for each in found if each.saturated), key=lambda each: -each.share)
    write_report(
        context.output("report"),
        {
            "samples": samples,
            "data": "dummy" if source.is_random else source.label,
            "nodes": [_row(each) for each in found],
        },
    )
    metrics = {
        "samples": samples,
        "could_saturate": len(found),
        "saturate": len(saturating),
        "greatest_share": saturating[0].share if saturating else 0.0,
    }
    return Outcome(metrics, notes=tuple(_notes(params, source, samples, found, saturating)))


def _row(each: Saturation) -> dict[str, object]:
    return {
        "node": each.node,
        "sums": each.sums,
        "saturated": each.saturated,
        "share": each.share,
        "sqnr_db": each.sqnr_db,
    }


def _notes(
    params: SaturationParams,
    source: FeedSource,
    samples: int,
    found: Sequence[Saturation],
    saturating: Sequence[Saturation],
) -> list[str]:
    if not found:
        return []
    shown = f"{samples} {'random inputs' if source.is_random else 'samples'}"
    if not saturating:
        note = (
            f"variant '{params.variant}': no 16-bit sum saturates in {shown}, though those of "
            f"{len(found)} nodes could on the target's CPU; `reduce_range: true` rules it out"
        )
        return [note]
    worst = ", ".join(
        f"{each.node} {100 * each.share:.3g}% (SQNR {each.sqnr_db:.0f} dB)"
        for each in saturating[:_SHOWN]
    )
    more = ", ..." if len(saturating) > _SHOWN else ""
    note = (
        f"WARNING: variant '{params.variant}': 16-bit sums saturate on the target, whose CPU has no "
        f"VNNI or AMX, in {len(saturating)} nodes over {shown}: {worst}{more}; it computes other "
        "values there than here: write `reduce_range: true`"
    )
    return [note]


KIND = StepKind(
    name="saturation",
    version=2,
    params=SaturationParams,
    inputs=("model",),
    outputs={"report": "report"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
    host_bound=True,
    user_code=True,
    entrypoints=lambda params: (params.data,),
)
