"""Speed, size and error of our quantizations compared with ONNX Runtime's and Olive's defaults.

MiniLM at 1 x 128 on real held-out sentences, and the digits CNN at batch 64 on its test images. All
models of one kind are measured in one process on the same feeds, a turn each in every round, in
random order; speed is the median of the rounds' paired ratios, with a bootstrap 95 % interval.
Errors are against fp32. The first run builds into the store; later ones only measure.

    python -m benchmarks.quantization_frontier [--json FILE] [--plot FILE.svg] [--seconds 75]
        [--models minilm digits] [--threads 1] [--olive PYTHON] [--store FOLDER]

`--plot frontier.svg` writes frontier-minilm.svg and frontier-digits.svg.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import onnxruntime

from benchmarks.frontier.measure import (
    Errors,
    Noise,
    complaints,
    errors_of,
    open_model,
    run_model,
    speeds_of,
    time_turns,
)
from benchmarks.frontier.ours import EXPORTED, build_ours
from benchmarks.frontier.plain import quantize_plainly, quantize_with_olive
from benchmarks.frontier.subjects import ROOT, Subject, subjects
from benchmarks.side_by_side import machine
from onnxbuild.onnxkit.report_page.blocks import Dot, Scatter
from onnxbuild.onnxkit.report_page.charts import chart_file
from onnxbuild.onnxkit.search.goals import pareto_front
from onnxbuild.onnxkit.timing.ratios import Ratio
from onnxbuild.onnxkit.timing.rounds import Turns, summarize_turns

LEAST_ERROR = 1e-7
"""Of a mean cosine in float32; below it, rounding alone is seen."""


@dataclass(frozen=True)
class Row:
    """A way and what was measured of it.

    Attributes:
        name: The way.
        p50_ms: Median latency.
        speed: The base's latency over its own, with a 95 % interval.
        size_bytes: Of the model's file.
        errors: Against fp32.
        on_front: Nothing is better in latency, error and size together.
        on_plot_front: Nothing is better in speed and error.
    """

    name: str
    p50_ms: float
    speed: Ratio
    size_bytes: int
    errors: Errors
    on_front: bool
    on_plot_front: bool

    @property
    def error(self) -> float:
        """1 - mean cosine, 0 where it is but rounding."""
        found = 1.0 - self.errors.cosine_mean
        return found if found > LEAST_ERROR else 0.0


def main() -> None:
    known = subjects()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", choices=known, default=list(known))
    parser.add_argument("--seconds", type=float, default=75.0, help="measuring, for each model")
    parser.add_argument(
        "--runs", type=int, default=15, help="runs of each at least, however long they take"
    )
    parser.add_argument("--threads", type=int, default=1, help="of each session")
    parser.add_argument("--olive", default=sys.executable, help="an interpreter that has Olive")
    parser.add_argument("--store", type=Path, default=ROOT / "build/frontier")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    if arguments.threads < 1:
        parser.error("--threads is at least 1")
    for path in (arguments.json, arguments.plot):
        if path is not None and not path.absolute().parent.is_dir():
            parser.error(f"there is no folder {path.parent}")  # before minutes of measuring
    arguments.store = arguments.store.resolve()
    said = f"{machine()}, onnxruntime {onnxruntime.__version__}, threads: {arguments.threads}"
    print(said)
    reports = {
        name: _one(known[name], arguments, said) for name in dict.fromkeys(arguments.models)
    }
    if arguments.json:
        text = json.dumps({"machine": said, "models": reports}, indent=2)
        arguments.json.write_text(f"{text}\n", encoding="utf-8")


def _one(subject: Subject, arguments: argparse.Namespace, said: str) -> dict[str, Any]:
    """Build, measure, print and draw one model's ways; returns its report."""
    ours = build_ours(subject, arguments.store)
    plain = quantize_plainly(subject, ours, arguments.store)
    olive = quantize_with_olive(arguments.olive, subject, ours, arguments.store)
    del ours[EXPORTED]
    models = {**ours, **plain, **olive}
    errors = errors_of(subject, models, arguments.store)
    feeds = subject.timed_feeds()
    runners = {
        name: run_model(open_model(path, arguments.threads), feeds)
        for name, path in models.items()
    }
    turns, noise = time_turns(runners, seconds=arguments.seconds, runs=arguments.runs)
    rows = _rows(models, turns, speeds_of(turns, subject.base), errors)
    said_of_noise = complaints(noise, {row.name: row.speed for row in rows})
    count = len(turns[subject.base])
    _print(subject, rows, noise, said_of_noise, count)
    if arguments.plot:
        path = arguments.plot.with_stem(f"{arguments.plot.stem}-{subject.name}")
        path.write_text(_plot(subject, rows, said_of_noise), encoding="utf-8")
    return {
        "title": subject.title,
        "machine": said,
        "timed_at": subject.timed_at,
        "base": subject.base,
        "rounds": count,
        "noise": asdict(noise),
        "noisy": said_of_noise,
        "ways": [asdict(row) for row in rows],
        "turns_ns": turns,
    }


def _rows(
    models: Mapping[str, Path],
    turns: Mapping[str, Turns],
    found: Mapping[str, Ratio],
    errors: Mapping[str, Errors],
) -> list[Row]:
    """Fastest first."""
    names = list(models)
    sizes = {name: path.stat().st_size for name, path in models.items()}
    lost = {name: max(1.0 - errors[name].cosine_mean, LEAST_ERROR) for name in names}
    whole = pareto_front([(1 / found[n].value, lost[n], sizes[n]) for n in names])
    drawn = pareto_front([(1 / found[n].value, lost[n]) for n in names])
    rows = [
        Row(
            name=name,
            p50_ms=summarize_turns(turns[name]).p50_ms,
            speed=found[name],
            size_bytes=sizes[name],
            errors=errors[name],
            on_front=number in whole,
            on_plot_front=number in drawn,
        )
        for number, name in enumerate(names)
    ]
    return sorted(rows, key=lambda row: -row.speed.value)


def _print(
    subject: Subject, rows: list[Row], noise: Noise, said_of_noise: list[str], count: int
) -> None:
    samples = rows[0].errors.samples
    score = subject.score[0] if subject.score else ""
    print(
        f"\n{subject.title}, latency at {subject.timed_at}, {count} rounds; "
        f"cosine and {score or 'no score'} over {samples} held-out samples; "
        f"speed: {subject.base} = 1"
    )
    print(
        f"load {noise.load_before:.1f} before, {noise.load_after:.1f} after; "
        f"other processes {noise.others:.0%}, steal {noise.steal:.1%}"
    )
    print(
        f"| way | speed | 95 % | p50 ms | MB | cosine mean | worst |{f' {score} |' if score else ''} front |"
    )
    print(f"|---|---|---|---|---|---|---|{'---|' if score else ''}---|")
    for row in rows:
        speed, errors = row.speed, row.errors
        score = f" {errors.score:.4f} |" if errors.score is not None else ""
        print(
            f"| {row.name} | {speed.value:.3f} | {speed.low:.3f}-{speed.high:.3f} "
            f"| {row.p50_ms:.3g} | {row.size_bytes / 1e6:.3g} | {errors.cosine_mean:.5f} "
            f"| {errors.cosine_min:.4f} |{score} {'*' if row.on_front else ''} |"
        )
    print("NOISY: " + "; ".join(said_of_noise) if said_of_noise else "quiet", flush=True)


def _plot(subject: Subject, rows: list[Row], said_of_noise: list[str]) -> str:
    noisy = " (noisy)" if said_of_noise else ""
    heads = ("variant", "1 - mean cosine to fp32", f"speed, {subject.base} = 1")
    dots = tuple(
        Dot(
            label=f"{row.name}, {row.size_bytes / 1e6:.3g} MB",
            x=row.error,
            y=row.speed.value,
            area=0.0,
            series="front" if row.on_plot_front else "",
            on_front=row.on_plot_front,
            cells=(f"{row.error:.4g}", f"{row.speed.value:.4g}"),
        )
        for row in rows
    )
    title = f"{subject.title} at {subject.timed_at}{noisy}"
    return chart_file(Scatter(title, *heads[1:], dots, heads, up_is_better=True))


if __name__ == "__main__":
    main()
