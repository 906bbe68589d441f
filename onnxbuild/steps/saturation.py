"""Replay an 8-bit model's sums as a CPU without VNNI or AMX adds them up."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from onnxbuild.core.sizes import counted
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.data.calibration_data import DataParams
from onnxbuild.onnxkit.data.recorded_calls import OPTIONAL_CALLS
from onnxbuild.onnxkit.model.model_files import load_model
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.saturation.saturation import GIVEN_IN_8_BITS
from onnxbuild.onnxkit.sessions.calibration_feeds import calibration_feeds

if TYPE_CHECKING:
    from onnxbuild.onnxkit.saturation.replay import Saturation

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class SaturationParams(DataParams):
    """Parameters of a replay.

    Attributes:
        variant: Its name, for messages.
    """

    variant: str = field(kw_only=True)


def run(context: StepContext) -> Outcome:
    """Write report.json: of each node whose sums can saturate, the share that does on the data.

    `source` is what the quantizer was given: nodes that had 8-bit weights there keep them.

    Raises:
        StepError: The data yields nothing, or not what the recipe declares.
    """
    from onnxbuild.onnxkit.saturation.replay import replay
    from onnxbuild.onnxkit.saturation.saturation import products

    params: SaturationParams = context.params
    source = params.source
    found, samples = replay(
        load_model(context.input("model"), weights="mapped"),
        calibration_feeds(context, source, params.samples),
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
    given = {each.node for each in products(load_model(context.input("source"), weights="mapped"))}
    shown = counted(samples, "random input" if source.is_random else "sample")
    notes = _notes(params.variant, shown, found, saturating, given)
    return Outcome(metrics, notes=tuple(notes))


def _row(each: Saturation) -> dict[str, object]:
    return {
        "node": each.node,
        "sums": each.sums,
        "saturated": each.saturated,
        "share": each.share,
        "sqnr_db": each.sqnr_db,
    }


def _notes(
    variant: str,
    shown: str,
    found: Sequence[Saturation],
    saturating: Sequence[Saturation],
    given: Collection[str],
) -> list[str]:
    if not found:
        return []
    concerned = saturating or found
    kept = [each.node for each in concerned if each.node in given]
    own = len(kept) < len(concerned)
    left = [f"{_some(kept)}: {GIVEN_IN_8_BITS}"] if kept else []
    if not saturating:
        fixes = ["`reduce_range: pairs` rules it out"] if own else []
        note = (
            f"variant '{variant}': no 16-bit sum saturates in {shown}, though those of "
            f"{counted(len(found), 'node')} could on the target's CPU"
        )
        return ["; ".join([note, *fixes, *left])]
    worst = _some([f"{each.node} {100 * each.share:.3g}%" + _loss(each) for each in saturating])
    fixes = ["write `reduce_range: pairs`"] if own else []
    note = (
        f"WARNING: variant '{variant}': 16-bit sums saturate on the target, whose CPU has no "
        f"VNNI or AMX, in {counted(len(saturating), 'node')} over {shown}: {worst}; it computes other "
        "values there than here: "
    )
    return [note + "; ".join([*fixes, *left])]


def _loss(each: Saturation) -> str:
    """Return the loss in words; empty where it is too small to be one."""
    if each.sqnr_db is None:
        return ""
    return f" (SQNR {each.sqnr_db:.0f} dB)" if each.signal else " (exact would be all zeros)"


def _some(texts: Sequence[str]) -> str:
    return ", ".join(texts[:_SHOWN]) + (", ..." if len(texts) > _SHOWN else "")


KIND = StepKind(
    name="saturation",
    version=3,
    params=SaturationParams,
    inputs=("model", "source", OPTIONAL_CALLS),
    outputs={"report": "report"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
    host_bound=True,
    user_code=True,
    entrypoints=lambda params: (params.data,),
)
