"""Reports on how near a variant is to the fp32 model on the user's data, sample by sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from onnxbuild.onnxkit.report_page.blocks import Strip, Strips
from onnxbuild.onnxkit.report_page.forms.reading import report_of, titled
from onnxbuild.onnxkit.report_page.model import Figure, Part, ReportSource
from onnxbuild.onnxkit.report_page.words import number

_ERRORS_FILE = "errors.npz"
_DOTS = 150
_LEAST = 1e-12


def fidelity(sources: Sequence[ReportSource]) -> Iterator[Part]:
    """Yield the loss of each sample."""
    reports = [(source, report_of(source)) for source in sources]
    found = [each for each in reports if each[1].get("cosine_mean") is not None]
    if not found:
        return
    note = (
        "A dot is 1 - cosine of one sample of `fidelity.data`, compared with the fp32 model; further left is "
        "nearer. The line is the median."
    )
    heads = (
        "variant",
        ">median loss",
        ">mean cosine",
        ">worst cosine",
        ">worst sample",
        ">SQNR",
        ">samples",
    )
    yield Part(
        "error",
        (Strips("Loss on your data", heads, tuple(_strip(*each) for each in found), note=note),),
        figures=tuple(
            Figure(
                source.bundle, "worst sample's cosine", report["cosine_min"],
                f"{report['cosine_min']:.5f}", "quality", "more", 1,
            )
            for source, report in found
            if source.bundle and not source.target
        ),
    )  # fmt: skip


def _strip(source: ReportSource, report: Mapping[str, Any]) -> Strip:
    losses = sorted(_losses(source.files[_ERRORS_FILE])) if _ERRORS_FILE in source.files else []
    loss = max(1 - report["cosine_mean"], _LEAST)
    noise = report.get("sqnr_db")
    return Strip(
        titled(source),
        source.bundle,
        tuple(losses[:: max(1, len(losses) // _DOTS)]),
        median(losses) if losses else loss,
        None,
        None,
        (
            f"{report['cosine_mean']:.6f}",
            f"{report['cosine_min']:.6f}",
            str(report["worst"]),
            "-" if noise is None else f"{number(noise)} dB",
            str(report["samples"]),
        ),
    )


def _losses(path: Path) -> list[float]:
    import numpy as np

    with np.load(path, allow_pickle=False) as arrays:
        return [max(1 - float(each), _LEAST) for each in arrays["cosines"]]
