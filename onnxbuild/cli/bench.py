"""`onnxbuild bench`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from onnxbuild.cli.options import (
    jobs_option,
    memory_option,
    only_option,
    recipes_argument,
    set_option,
    store_option,
    timeout_option,
)


@click.command("bench")
@recipes_argument()
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="PATH",
    help="An .onnx or .ort file, a program (.pt, .pt2), a bundle (out/RECIPE/VARIANT), or a release (folder or "
    ".tar). Repeatable.",
)
@only_option()
@set_option()
@store_option()
@jobs_option()
@memory_option()
@timeout_option()
@click.option("--json", "as_json", is_flag=True, help="Print the reports as one JSON object.")
@click.pass_context
def command(
    ctx: click.Context,
    *,
    recipes: tuple[str, ...],
    against: tuple[Path, ...],
    only: tuple[str, ...],
    settings: Mapping[str, str],
    store: str | None,
    jobs: int | None,
    memory: int | None,
    timeout: float,
    as_json: bool,
) -> None:
    """Measure variants again, side by side, and compare them with other models.

    \b
    onnxbuild bench recipes/bert.yaml
    onnxbuild bench recipes/bert.yaml --against ../old/model.onnx
    onnxbuild bench recipes/bert.yaml --against dist/bert-1.0.0.tar --set benchmark.max_time_s=10
    onnxbuild bench recipes/bert.yaml --only int8 --set benchmark.compile=true

    Steps that are not built yet are built first. Then all models take turns in one process, in random
    order, on the recipe's dummy inputs at `benchmark.points`, as `run` measures them, and nothing
    is taken from an earlier measurement. A model from elsewhere must take the recipe's inputs; a
    PyTorch program (TorchScript, torch.export, AOTInductor) can run any code; it runs in the same
    sandbox as the recipe's own code.

    \b
      p50, p90, p99   latency in ms; [low to high] is the 95 % confidence interval of the median
      items/s         elements along the first axis of the first input, by p50
      vs ...          how many times as fast, with the 95 % interval [low to high]. If 1 is in it,
                      no difference was measured. An interval wider than a factor of two is shown
                      alone; - means too few measurements for an interval
      load, first     time to create the session and to run it once, alone in a new process
      peak, steady    growth of that process's memory

    A noisy machine is reported: repeat the measurement on a quiet one. Exit codes: 0 measured, 1 a step failed,
    2 recipe or usage.
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.adapters.console.sinks import PlainLines
    from onnxbuild.api import Request
    from onnxbuild.bench import bench
    from onnxbuild.terminal.display import make_display
    from onnxbuild.wiring import RunOptions

    request = Request(tuple(map(Path, recipes)), only, settings, store)
    options = RunOptions(jobs, memory, timeout)
    if as_json:
        progress = PlainLines(lambda text: click.echo(text, err=True), verbose=False)
        found = bench(request, against, options, [progress])
    else:
        with make_display(as_json=False, verbose=False) as display:
            found = bench(request, against, options, [display])
    if as_json:
        click.echo(json.dumps(found.reports, indent=2, sort_keys=True))
    else:
        for recipe, providers in found.reports.items():
            for provider, report in providers.items():
                _show(recipe, provider, report)
    ctx.exit(found.result.exit_code)


def _show(recipe: str, provider: str, report: Mapping[str, Any]) -> None:
    from onnxbuild.terminal.table import format_table

    host = report["host"]
    click.echo(f"\n{recipe} on {provider}: {host['cpu']}, {host['threads']} threads")
    for point in report["points"]:
        click.echo(f"\nat {point['point']}:")
        rows = [_row(name, found) for name, found in _by_speed(point["results"])]
        headings = dict.fromkeys(key for row in rows for key in row)
        for line in format_table([{key: row.get(key, "") for key in headings} for row in rows]):
            click.echo(line)
    click.echo("\neach alone:")
    costs = [_cost(name, each) for name, each in report["models"].items()]
    headings = dict.fromkeys(key for row in costs for key in row)
    for line in format_table([{key: row.get(key, "") for key in headings} for row in costs]):
        click.echo(line)
    _show_clients(report.get("concurrency"))
    for why in host["noisy"]:
        click.echo(f"noisy: {why}; repeat this on a quiet machine", err=True)


def _by_speed(results: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(results.items(), key=lambda item: float(item[1]["p50_ms"]))


def _row(name: str, found: Mapping[str, Any]) -> dict[str, str]:
    row = {
        "model": name,
        "p50": f"{found['p50_ms']:.4g} ms",
        "95 % of p50": f"[{found['p50_low_ms']:.4g} to {found['p50_high_ms']:.4g}]",
        "p90": f"{found['p90_ms']:.4g} ms",
        "p99": f"{found['p99_ms']:.4g} ms",
        "items/s": f"{found['throughput_items_per_s']:.4g}",
    }
    if found["speedup"] is not None:
        bounds = (found["speedup_low"], found["speedup_high"])
        row["vs pytorch"] = _ratio(found["speedup"], *bounds)
    for other, ratio in found.get("against", {}).items():
        row[f"vs {other}"] = _ratio(*ratio)
    return row


def _ratio(value: float, low: float | None, high: float | None) -> str:
    from onnxbuild.onnxkit.plots.shown_ratio import is_known, shown_ratio

    if not is_known(low, high):
        return shown_ratio(value, low, high)
    return f"{value:.3g} x [{low:.3g} to {high:.3g}]"


def _cost(name: str, each: Mapping[str, Any]) -> dict[str, str]:
    size = each.get("size_bytes")
    row = {
        "model": name,
        "size": "-" if size is None else f"{size / 2**20:.1f} MiB",
        "load": f"{each['load_s'] * 1e3:.0f} ms",
        "first": f"{each['first_inference_ms']:.3g} ms",
        "peak": f"{each['peak_rss_growth_bytes'] / 2**20:.0f} MiB",
        "steady": f"{each['steady_rss_growth_bytes'] / 2**20:.0f} MiB",
    }
    if "joules_per_run" in each:
        row["energy"] = f"{each['joules_per_run']:.3g} J/run"
    if "same_as" in each:
        row["same as"] = each["same_as"]
    return row


def _show_clients(found: Mapping[str, Any] | None) -> None:
    if found is None:
        return
    from onnxbuild.terminal.table import format_table

    click.echo(f"\nclients at {found['point']}, {found['sessions']} session:")
    rows = [
        {
            "model": name,
            "clients": str(each["clients"]),
            "runs/s": f"{each['runs_per_s']:.4g}",
            "95 %": f"[{each['low']:.4g} to {each['high']:.4g}]",
            "p50": f"{each['p50_ms']:.4g} ms",
            "p99": f"{each['p99_ms']:.4g} ms",
        }
        for name, clients in found["models"].items()
        for each in clients
    ]
    for line in format_table(rows):
        click.echo(line)
