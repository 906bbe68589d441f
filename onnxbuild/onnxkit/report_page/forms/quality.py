"""Reports that judge outputs: against the reference, against the fp32 model, by the user's own metric."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from onnxbuild.core.sizes import share_text
from onnxbuild.onnxkit.drawing.numbers import number
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.report_page.blocks import (
    Block,
    Cell,
    Cells,
    Figure,
    GateVerdict,
    Lines,
    Part,
    ReportSource,
    Series,
    Strip,
    Strips,
    Table,
)
from onnxbuild.onnxkit.report_page.forms.reading import report_of, titled, verdict_of

Reports = Sequence[tuple[ReportSource, Mapping[str, Any]]]

_QUANTILES = ("50 %", "90 %", "99 %", "99.9 %", "largest")
_WORST = 8
_NONE = "-"


def validation(sources: Sequence[ReportSource]) -> Iterator[Part]:
    """Yield verdicts, errors and placements."""
    reports = [(source, report_of(source)) for source in sources]
    yield Part(
        "verdicts",
        verdicts=tuple(
            verdict_of(source, report, _decisive(report)) for source, report in reports
        ),
        figures=tuple(_figures(reports)),
    )
    shown = [each for each in reports if each[1].get("points")]
    if shown:
        yield Part("error", tuple(_blocks(shown)))
    rows = tuple(_placements(reports))
    if rows:
        heads = ("variant", "target", "provider", ">nodes", ">share", "operators left to the CPU")
        yield Part("placement", (Table("Nodes by execution provider", heads, rows),))


def _decisive(report: Mapping[str, Any]) -> str:
    metrics, bounds = report.get("metrics") or {}, report.get("tolerances") or {}
    said = []
    for key, name in (
        ("max_abs", "largest error"),
        ("cosine_min", "cosine"),
        ("equal_min", "equal"),
    ):
        if metrics.get(key) is not None:
            bound = bounds.get(key)
            needed = f" (at least {bound:g})" if isinstance(bound, int | float) else ""
            said.append(
                f"{name} {_exact(metrics[key]) if key != 'max_abs' else number(metrics[key])}{needed}"
            )
    if metrics.get("part"):
        said.append(f"lost part {metrics['part']}")
    if metrics.get("points"):
        said.append(f"{metrics.get('points_passed', 0)} of {metrics['points']} points")
    return ", ".join(said)


def _figures(reports: Reports) -> Iterator[Figure]:
    for source, report in reports:
        metrics = report.get("metrics") or {}
        if source.target or not metrics:
            continue
        worst = metrics.get("cosine_min")
        if worst is not None:
            yield Figure(
                source.bundle, "cosine to the reference", worst, _exact(worst), "quality", 3
            )
        equal = metrics.get("equal_min")
        if equal is not None:
            yield Figure(source.bundle, "equal elements", equal, f"{equal:.4f}", "quality", 4)
        error = metrics.get("max_abs")
        if error is not None:
            yield Figure(source.bundle, "largest error", error, number(error))


def _exact(value: float) -> str:
    """A cosine: as many digits as it takes to tell it from 1."""
    return f"{value:.5f}" if value < 0.999995 else "1.00000"  # noqa: PLR2004 - rounds to 1


def _share(value: float) -> str:
    return share_text(value, 0)


def _ratio(value: float) -> str:
    return f"{value:.4f}"


_OF_THE_WHOLE: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "equal": ("tokens equal", _share),
    "equal_min": ("equal elements", _share),
    "max_abs": ("largest error", number),
    "cosine_min": ("cosine", _exact),
    "kl": ("KL divergence, nats", number),
    "top1": ("top-1 agreement", _share),
    "perplexity_ratio": ("ratio of perplexities", _ratio),
    "score": ("score", number),
    "compared": ("tokens compared", number),
}
"""Metric of a gate on what a decoder or a pipeline gives -> in words, and its text."""


def whole(sources: Sequence[ReportSource]) -> Iterator[Part]:
    """Yield verdicts on what a decoder or a pipeline gives: its tokens, their distributions, a score."""
    verdicts: list[GateVerdict] = []
    figures: list[Figure] = []
    for source in sources:
        report = report_of(source)
        metrics = {**report, **(report.get("metrics") or {})}
        found = [
            Figure(source.bundle, words, metrics[key], text(metrics[key]))
            for key, (words, text) in _OF_THE_WHOLE.items()
            if isinstance(metrics.get(key), int | float)
        ]
        said = ", ".join(f"{each.name} {each.text}" for each in found)
        verdicts.append(verdict_of(source, report, said))
        figures += [] if source.target else found
    yield Part("verdicts", verdicts=tuple(verdicts), figures=tuple(figures))


def _blocks(reports: Reports) -> Iterator[Block]:
    yield Strips(
        "Largest error of each point",
        ("variant and output", ">median over points", ">smallest", ">largest", ">points"),
        tuple(_strips(reports)),
        note="A dot is the largest |model - reference| at one point, on a logarithmic axis.",
    )
    curves = tuple(_curves(reports))
    if curves:
        yield Lines(
            "Distribution of errors over elements",
            "share of elements below",
            _QUANTILES,
            curves,
            log=True,
        )
    yield _by_point(reports)
    yield _worst(reports)


def _outputs(report: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(name for point in report["points"] for name in point["outputs"]))


def _strips(reports: Reports) -> Iterator[Strip]:
    for source, report in reports:
        for name in _outputs(report):
            errors = sorted(
                point["outputs"][name]["max_abs"]
                for point in report["points"]
                if point["outputs"].get(name, {}).get("max_abs") is not None
            )
            if errors:
                yield Strip(
                    f"{titled(source)} · {name}",
                    source.bundle,
                    tuple(errors),
                    median(errors),
                    None,
                    None,
                    (number(errors[0]), number(errors[-1]), str(len(errors))),
                )


def _curves(reports: Reports) -> Iterator[Series]:
    """The quantiles of |error| of the point where the largest is."""
    for source, report in reports:
        found = [
            (*each["abs_quantiles"], each["max_abs"])
            for point in report["points"]
            for each in point["outputs"].values()
            if each.get("abs_quantiles")
        ]
        if found:
            values = max(found, key=lambda each: each[-1])
            yield Series(titled(source), tuple(value if value > 0 else None for value in values))


def _by_point(reports: Reports) -> Table:
    """A row for each point and output, a pair of columns for each variant."""
    columns = [(titled(source), report) for source, report in reports]
    keys: dict[tuple[str, str], Mapping[str, int]] = {}
    for _, report in columns:
        for point in report["points"]:
            for name in point["outputs"]:
                keys.setdefault((point["point"], name), point["sizes"])
    rows: list[Cells] = []
    for (point_name, output), sizes in keys.items():
        row: list[str | Cell] = [
            point_name,
            ", ".join(f"{k} {v}" for k, v in sizes.items()),
            output,
        ]
        for _, report in columns:
            row += _cells(report, point_name, output)
        rows.append(tuple(row))
    heads = ["point", "sizes", "output"]
    for title, _ in columns:
        heads += [f">{title}: largest error", f">{title}: cosine"]
    return Table("Every point and output", tuple(heads), tuple(rows), folded=True)


def _cells(report: Mapping[str, Any], point: str, output: str) -> list[str | Cell]:
    for each in report["points"]:
        found = each["outputs"].get(output) if each["point"] == point else None
        if found is None:
            continue
        error = found.get("max_abs")
        near = found.get("cosine") if found.get("cosine") is not None else found.get("equal")
        tone = "bad" if found.get("breaches") else ""
        texts = (
            _NONE if error is None else number(error),
            _NONE if near is None else _exact(near),
        )
        return [Cell(text, "bad") if tone else text for text in texts]
    return [_NONE, _NONE]


def _worst(reports: Reports) -> Table:
    found: list[tuple[float, str, str, str, str, str, str]] = []
    for source, report in reports:
        worst = sorted(
            (
                (each["max_abs"], titled(source), point["point"], name, each)
                for point in report["points"]
                for name, each in point["outputs"].items()
                if each.get("worst") is not None
            ),
            key=lambda each: -each[0],
        )
        found += [
            (
                error,
                title,
                point,
                name,
                str(each["worst"]),
                _said(each["worst_expected"]),
                _said(each["worst_actual"]),
            )
            for error, title, point, name, each in worst[:_WORST]
        ]
    heads = ("variant", "point", "output", "element", ">reference", ">model", ">off by")
    rows: tuple[Cells, ...] = tuple(
        (title, point, name, Cell(index, code=True), expected, actual, number(error))
        for error, title, point, name, index, expected, actual in found
    )
    return Table("Worst elements", heads, rows, folded=True)


def _said(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, int | float) else str(value)


def _placements(reports: Reports) -> Iterator[Cells]:
    for source, report in reports:
        placed = report.get("placement")
        if not placed:
            continue
        nodes = placed.get("nodes") or {}
        total = sum(nodes.values()) or 1
        left = placed.get("operators_on_cpu") or {}
        ordered = sorted(left.items(), key=lambda item: (-item[1], item[0]))
        said = ", ".join(f"{count} {name}" for name, count in ordered[:_WORST])
        for provider, count in nodes.items():
            own = said if provider.startswith("CPU") else ""
            yield (
                source.bundle, str(report.get("provider", source.target)), provider, str(count), share_text(count / total, 0), own,
            )  # fmt: skip


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
                f"{report['cosine_min']:.5f}", "quality", 1,
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
    with np.load(path, allow_pickle=False) as arrays:
        return [max(1 - float(each), _LEAST) for each in arrays["cosines"]]


_DIGITS = 5


def evaluation(sources: Sequence[ReportSource]) -> Iterator[Part]:
    """Yield verdicts and scores; the reference's own score is a row, and no variant's."""
    reports = [(source, report_of(source)) for source in sources]
    yield Part(
        "verdicts",
        verdicts=tuple(
            verdict_of(source, report, _decisive_score(report))
            for source, report in reports
            if source.bundle
        ),
        figures=tuple(
            Figure(source.bundle, "score", report["score"], _shown(report["score"]), "quality", 0)
            for source, report in reports
            if source.bundle and not source.target and report.get("score") is not None
        ),
    )
    strips = tuple(_score_strip(source, report) for source, report in reports if "score" in report)
    if strips:
        metric = next(report["metric"] for _, report in reports if "score" in report)
        heads = ("model", ">score", ">drop", ">needs at least", ">may drop", ">samples")
        note = (
            "The line is the score, the bar its bootstrap interval; a dot is the score on one resample of "
            f"your data. Metric: {metric.rpartition(':')[2]}, more is better."
        )
        yield Part("score", (Strips("Score on your data", heads, strips, note=note, log=False),))


def _decisive_score(report: Mapping[str, Any]) -> str:
    if report.get("score") is None:
        return ""
    said = f"score {_shown(report['score'])}"
    if report.get("min") is not None:
        said += f" (at least {report['min']:g})"
    if report.get("drop") is not None:
        said += f", drop {number(report['drop'])}"
        if report.get("max_drop") is not None:
            said += f" (at most {report['max_drop']:g})"
    return said


def _score_strip(source: ReportSource, report: Mapping[str, Any]) -> Strip:
    low, high = report.get("score_interval") or (None, None)
    drop = report.get("drop")
    scores = (report.get("resampled") or {}).get("scores") or ()
    return Strip(
        titled(source) or "reference",
        source.bundle,
        tuple(scores),
        report["score"],
        low,
        high,
        (
            _NONE if drop is None else number(drop),
            *(
                _NONE if report.get(key) is None else f"{report[key]:g}"
                for key in ("min", "max_drop")
            ),
            f"{report.get('samples', 0):,}",
        ),
    )


def _shown(score: float) -> str:
    return f"{score:.{_DIGITS - 1}f}"
