"""Reports of speed and memory: contenders side by side, and the time that operators take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from onnxbuild.core.sizes import figure, share_text, size_text
from onnxbuild.onnxkit.benchmark.baseline import ShownBaseline, baseline_of
from onnxbuild.onnxkit.benchmark.report import PER_TOKEN, kind_words
from onnxbuild.onnxkit.drawing.numbers import UNKNOWN, milliseconds, number, shown_ratio
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.report_page.blocks import (
    Bar,
    Bars,
    Block,
    Cell,
    Cells,
    Figure,
    Paragraph,
    Part,
    ReportSource,
    Strip,
    Strips,
    Table,
)
from onnxbuild.onnxkit.report_page.forms.reading import report_of, titled

_SAMPLES_FILE = "samples.npz"
_DOTS = 150
_NONE = "-"
_MIB = 1 << 20


def benchmark(sources: Sequence[ReportSource]) -> Iterator[Part]:
    """Yield latencies with their samples, then what each model costs alone."""
    first = True
    for source in sources:
        report = report_of(source)
        points = report.get("points") or ()
        if not points:
            continue
        where = f" on {report.get('provider', source.target)}" if source.target else ""
        if source.bundle:  # the trials of a search
            of_trials = f"{where}, trials of {source.bundle}"
            yield Part("search", tuple(_latency(source, report, of_trials)))
            continue
        figures = tuple(_figures(report)) if first and not source.target else ()
        first = False
        blocks = (
            *_latency(source, report, where),
            *_decoding(report, where),
            *_components(report, where),
        )
        yield Part("latency", blocks, figures=figures)
        yield Part("cost", tuple(_costs(report, where)))


def _figures(report: Mapping[str, Any]) -> Iterator[Figure]:
    point, base = report["points"][0], baseline_of(report)
    for name, found in point["results"].items():
        if name == base.name:
            continue
        p50 = found["p50_ms"]
        yield Figure(
            name,
            f"median latency, ms, at {point['point']}",
            p50,
            milliseconds(p50),
            "speed",
            rank=0,
        )
        said = shown_ratio(*(found.get(f"speedup{end}") for end in ("", "_low", "_high")))
        if said != UNKNOWN:  # a ratio that is not known says nothing of one build against another
            yield Figure(name, f"speed {base.heading}", found["speedup"], said)
    for point in [each for each in report["points"] if each.get("kind") in PER_TOKEN][:1]:
        for name, found in point["results"].items():
            if name != base.name:
                rate = found["throughput_items_per_s"]
                yield Figure(name, f"tokens a second, at {point['point']}", rate, figure(rate, 3))
    for name, model in report["models"].items():
        if model.get("size_bytes") is not None and name != base.name:
            yield Figure(
                name,
                "size, bytes",
                model["size_bytes"],
                size_text(model["size_bytes"]),
                "size",
                rank=0,
            )


def _latency(source: ReportSource, report: Mapping[str, Any], where: str) -> Iterator[Block]:
    host = report.get("host") or {}
    noisy = host.get("noisy") or ()
    if noisy:
        yield Paragraph(
            f"Measured on a noisy machine ({'; '.join(noisy)}): compare the intervals, and measure again with "
            "`onnxbuild bench` on a quiet one."
        )
    base = baseline_of(report)
    yield Paragraph(_about(report, base))
    dots = _samples(source.files.get(_SAMPLES_FILE))
    for point in report["points"]:
        per_token = point.get("kind") in PER_TOKEN
        rates = (">ms a token", ">tokens/s") if per_token else (">items/s",)
        heads = (
            "model", ">median, ms", ">p90, ms", ">p99, ms", ">runs", *rates, f">{base.heading}",
        )  # fmt: skip
        strips = tuple(
            _strip(
                name,
                base.name,
                found,
                dots.get(f"{point['point']}/{name}/runs_ns", ()),
                per_token=per_token,
            )
            for name, found in sorted(point["results"].items(), key=lambda item: item[1]["p50_ms"])
        )
        note = (
            "A dot is one run, the line the median, the bar its 95 % interval; the axis is logarithmic, "
            "further left is faster."
        )
        words = kind_words(point)
        title = f"Latency at {point['point']}{f' ({words})' if words else ''}{where}"
        yield Strips(title, heads, strips, note=note)


def _decoding(report: Mapping[str, Any], where: str) -> Iterator[Block]:
    """Yield a table of a decoder's points: the first token by prompt, later ones by what came before, and the state."""
    rows = [
        (
            point["point"],
            kind_words(point).partition(",")[0],
            size_text(point["state_bytes"]) if "state_bytes" in point else _NONE,
            *(_rate(point, point["results"].get(name)) for name in report["models"]),
        )
        for point in report["points"]
        if point.get("kind")
    ]
    if rows:
        heads = ("point", "call", ">state after it", *(f">{name}" for name in report["models"]))
        yield Table(f"Prefill, decode, whole texts{where}", heads, tuple(rows))


def _rate(point: Mapping[str, Any], found: Mapping[str, Any] | None) -> str:
    if found is None:
        return _NONE
    if point["kind"] not in PER_TOKEN:
        return milliseconds(found["p50_ms"])
    rate = found["throughput_items_per_s"]
    return f"{milliseconds(1e3 / rate)} a token, {figure(rate, 3)} tokens/s"


def _components(report: Mapping[str, Any], where: str) -> Iterator[Block]:
    """Yield where the time of a pipeline goes."""
    for point in report["points"]:
        rows: list[Cells] = []
        for name, found in point["results"].items():
            parts = found.get("parts") or {}
            rows += [
                (
                    name,
                    part,
                    f"{each['calls']:g}",
                    milliseconds(each["p50_ms"]),
                    share_text(each["share"], 0),
                )
                for part, each in parts.items()
            ]
            if parts:
                rest = 1 - sum(each["share"] for each in parts.values())
                rows.append((name, "the callable itself", _NONE, _NONE, share_text(rest, 0)))
        if rows:
            heads = (
                "model",
                "component",
                ">calls in a run",
                ">median of a call",
                ">share of the time",
            )
            yield Table(f"Components at {point['point']}{where}", heads, tuple(rows))


def _about(report: Mapping[str, Any], base: ShownBaseline) -> str:
    """Return a sentence that names the baseline, or says why there is none."""
    if not base.name:
        return f"No baseline: {base.absent}."
    how = (report.get("baseline") or {}).get("how")
    return f"The baseline is {base.title} (`{base.name}`)" + (f": {how}." if how else ".")


def _strip(
    name: str,
    baseline: str,
    found: Mapping[str, Any],
    samples: Sequence[float],
    *,
    per_token: bool,
) -> Strip:
    ratio = _NONE
    if found.get("speedup") is not None and name != baseline:
        ratio = shown_ratio(found["speedup"], found.get("speedup_low"), found.get("speedup_high"))
    return Strip(
        name,
        name,
        tuple(samples),
        found["p50_ms"],
        found.get("p50_low_ms"),
        found.get("p50_high_ms"),
        (
            number(found["p90_ms"]),
            number(found["p99_ms"]),
            f"{found['samples']:,}",
            *((number(1e3 / found["throughput_items_per_s"]),) if per_token else ()),
            figure(found["throughput_items_per_s"], 3),
            ratio,
        ),
    )


def _samples(path: Path | None) -> dict[str, tuple[float, ...]]:
    """`POINT/MODEL/runs_ns` -> runs in ms, evenly spread over the measurement."""
    if path is None:
        return {}

    found = {}
    with np.load(path, allow_pickle=False) as arrays:
        for name in arrays.files:
            if name.endswith("/runs_ns"):
                runs = arrays[name]
                kept = runs[:: max(1, -(-len(runs) // _DOTS))]
                found[name] = tuple(round(float(each) / 1e6, 6) for each in kept)
    return found


def _costs(report: Mapping[str, Any], where: str) -> Iterator[Block]:
    models = report["models"]
    yield Bars(
        f"Memory in use{where}",
        ("model", "steady growth of the process, MiB"),
        tuple(
            Bar(name, each["steady_rss_growth_bytes"] / _MIB, name)
            for name, each in models.items()
            if each.get("steady_rss_growth_bytes") is not None
        ),
    )
    yield Bars(
        f"Time to load{where}",
        ("model", "creating the session, ms"),
        tuple(
            Bar(name, each["load_s"] * 1e3, name)
            for name, each in models.items()
            if "load_s" in each
        ),
    )
    heads = (
        "model",
        ">size",
        ">load",
        ">first run",
        ">peak memory",
        ">steady memory",
        ">energy",
        "same as",
    )
    yield Table(f"Each model alone, in a new process{where}", heads, tuple(_alone(models)))
    clients = report.get("concurrency")
    if clients:
        yield Bars(
            f"Throughput by clients{where} at {clients['point']}",
            ("model and clients", "runs per second"),
            tuple(
                Bar(
                    f"{name}, {row['clients']} clients",
                    row["runs_per_s"],
                    name,
                    row.get("low"),
                    row.get("high"),
                )
                for name, rows in clients["models"].items()
                for row in rows
            ),
        )


def _alone(models: Mapping[str, Any]) -> Iterator[Cells]:
    for name, each in models.items():
        joules = each.get("joules_per_run")
        yield (
            name,
            _NONE if each.get("size_bytes") is None else size_text(each["size_bytes"]),
            _NONE if "load_s" not in each else milliseconds(each["load_s"] * 1e3),
            _NONE
            if "first_inference_ms" not in each
            else milliseconds(each["first_inference_ms"]),
            *(
                _NONE if each.get(key) is None else size_text(each[key])
                for key in ("peak_rss_growth_bytes", "steady_rss_growth_bytes")
            ),
            _NONE if joules is None else f"{number(joules)} J",
            each.get("same_as", ""),
        )


_SHOWN = 12


def profile(sources: Sequence[ReportSource]) -> Iterator[Part]:
    """Yield the slowest operators and nodes at each point."""
    for source in sources:
        for point, found in report_of(source).get("points", {}).items():
            yield Part("placement", tuple(_blocks(f"{titled(source)} at {point}", source, found)))


def _blocks(title: str, source: ReportSource, found: Mapping[str, Any]) -> Iterator[Block]:
    yield Bars(
        f"Time by operator: {title}",
        ("operator", "ms per run"),
        tuple(
            Bar(f"{each['operator']} ({_nodes(each['nodes'])})", each["ms"], source.bundle)
            for each in found["operators"][:_SHOWN]
        ),
    )
    rows = tuple(
        (Cell(each["node"], code=True), each["operator"], milliseconds(each["ms"]))
        for each in found["nodes"]
    )
    yield Table(f"Slowest nodes: {title}", ("node", "operator", ">per run"), rows, folded=True)


def _nodes(count: float) -> str:
    """`1 node`, `10 nodes`; `2.5 nodes` of a branch that not every run takes."""
    return f"{count:g} node{'' if count == 1 else 's'}"
