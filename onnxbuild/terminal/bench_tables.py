"""Print what `bench` measured."""

from collections.abc import Mapping
from typing import Any

from onnxbuild.core.sizes import figure, size_text
from onnxbuild.terminal.table import print_table, say


def show_report(recipe: str, provider: str, report: Mapping[str, Any]) -> None:
    """Print one report.

    Args:
        provider: Where it was measured.
        report: See `bench.Bench`.
    """
    from onnxbuild.onnxkit.benchmark.baseline import baseline_of
    from onnxbuild.onnxkit.benchmark.report import PER_TOKEN

    host, base = report["host"], baseline_of(report)
    say(f"\n{recipe} on {provider}: {host['cpu']}, {host['threads']} threads")
    if base.absent:
        say(f"no baseline: {base.absent}")
    for point in report["points"]:
        say(f"\nat {point['point']}{_kind(point)}:")
        per_token = point["items"] if point.get("kind") in PER_TOKEN else 0
        print_table(
            [
                _row(name, found, base.name, per_token)
                for name, found in _by_speed(point["results"])
            ]
        )
    say("\neach alone:")
    print_table([_cost(name, each) for name, each in report["models"].items()])
    _show_clients(report.get("concurrency"))
    for why in host["noisy"]:
        say(f"noisy: {why}; repeat this on a quiet machine", err=True)


def _kind(point: Mapping[str, Any]) -> str:
    """Say what a point of a decoder is, and what its new state takes; empty for any other model."""
    from onnxbuild.onnxkit.benchmark.report import kind_words

    said, size = kind_words(point), point.get("state_bytes")
    if not said:
        return ""
    return f" ({said})" if size is None else f" ({said}; the state takes {size_text(size)})"


def _by_speed(results: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(results.items(), key=lambda item: float(item[1]["p50_ms"]))


def _row(name: str, found: Mapping[str, Any], baseline: str, per_token: int) -> dict[str, str]:
    """One model's figures.

    Args:
        per_token: New tokens of a run, where items are that; else 0.
    """
    row = {
        "model": name,
        "p50": f"{figure(found['p50_ms'], 4)} ms",
        "95 % of p50": f"[{figure(found['p50_low_ms'], 4)} to {figure(found['p50_high_ms'], 4)}]",
        "p90": f"{figure(found['p90_ms'], 4)} ms",
        "p99": f"{figure(found['p99_ms'], 4)} ms",
        "tokens/s" if per_token else "items/s": figure(found["throughput_items_per_s"], 4),
    }
    if per_token:
        row["ms/token"] = figure(1e3 / found["throughput_items_per_s"], 4)
    if found["speedup"] is not None:
        bounds = (found["speedup_low"], found["speedup_high"])
        row[f"vs {baseline}"] = _ratio(found["speedup"], *bounds)
    for other, ratio in found.get("against", {}).items():
        row[f"vs {other}"] = _ratio(*ratio)
    if parts := found.get("parts"):
        shares = sorted(((each["share"], part) for part, each in parts.items()), reverse=True)
        row["time of components"] = ", ".join(f"{part} {share:.0%}" for share, part in shares)
    return row


def _ratio(value: float, low: float | None, high: float | None) -> str:
    from onnxbuild.onnxkit.drawing.numbers import UNKNOWN, is_known

    if not low or high is None:
        return UNKNOWN
    shown = f"{figure(value, 3)} x" if is_known(low, high) else UNKNOWN
    return f"{shown} [{figure(low, 3)} to {figure(high, 3)}]"


def _cost(name: str, each: Mapping[str, Any]) -> dict[str, str]:
    size = each.get("size_bytes")
    row = {
        "model": name,
        "size": "-" if size is None else size_text(size),
        "load": f"{each['load_s'] * 1e3:.0f} ms",
        "first": f"{figure(each['first_inference_ms'], 3)} ms",
        "peak": f"{each['peak_rss_growth_bytes'] / 2**20:.0f} MiB",
        "steady": f"{each['steady_rss_growth_bytes'] / 2**20:.0f} MiB",
    }
    if "joules_per_run" in each:
        row["energy"] = f"{figure(each['joules_per_run'], 3)} J/run"
    if "same_as" in each:
        row["same as"] = each["same_as"]
    return row


def _show_clients(found: Mapping[str, Any] | None) -> None:
    if found is None:
        return
    say(f"\nclients at {found['point']}, {found['sessions']} session:")
    rows = [
        {
            "model": name,
            "clients": str(each["clients"]),
            "runs/s": figure(each["runs_per_s"], 4),
            "95 %": f"[{figure(each['low'], 4)} to {figure(each['high'], 4)}]",
            "p50": f"{figure(each['p50_ms'], 4)} ms",
            "p99": f"{figure(each['p99_ms'], 4)} ms",
        }
        for name, clients in found["models"].items()
        for each in clients
    ]
    print_table(rows)
