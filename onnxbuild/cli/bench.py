"""`onnxbuild bench`."""

import json
from collections.abc import Mapping
from pathlib import Path

import click

from onnxbuild.cli.executors import executor_of, executor_option
from onnxbuild.cli.options import (
    PathName,
    machine_options,
    only_option,
    quiet_option,
    recipes_argument,
    set_option,
    store_option,
)


@click.command("bench")
@recipes_argument()
@click.option(
    "--against",
    type=PathName(path_type=Path),
    multiple=True,
    metavar="PATH",
    help="An .onnx or .ort file, a program (.pt, .pt2), a bundle (out/RECIPE/VARIANT), or a release (folder or "
    ".tar). Repeatable.",
)
@only_option()
@set_option()
@store_option()
@machine_options()
@executor_option()
@click.option("--json", "as_json", is_flag=True, help="Print the reports as one JSON object.")
@quiet_option()
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
    executor: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Measure variants again, side by side, and compare them with other models.

    \b
    onnxbuild bench recipes/bert.yaml
    onnxbuild bench recipes/bert.yaml --against ../old/model.onnx
    onnxbuild bench recipes/bert.yaml --against dist/bert-1.0.0.tar
    onnxbuild bench recipes/bert.yaml --only int8 --set benchmark.compile=true

    Steps that are not built yet are built first. Then all models take turns in one process, in random
    order, on the recipe's dummy inputs at `benchmark.points`, as `run` measures them, and nothing
    is taken from an earlier measurement. A model from elsewhere must take the recipe's inputs; a
    PyTorch program (TorchScript, torch.export, AOTInductor) can run any code; it runs in the same
    sandbox as the recipe's own code.

    \b
      p50, p90, p99   latency in ms; [low to high] is the median's 95 % interval
      items/s         samples, by p50: rows of the first input with a dynamic
                      first axis
      vs ...          how many times as fast, with the 95 % interval. If 1 is in
                      it, no difference was measured. An interval wider than a
                      factor of two is shown alone; - means too few measurements
      load, first     time to create the session, and to run it once, in a new
                      process
      peak, steady    growth of that process's memory
      time of ...     of a pipeline (RECIPE@pipeline): the share of each component

    A noisy machine is reported: repeat the measurement on a quiet one. Exit codes: 0 measured, 1 a step failed,
    2 recipe or usage.
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.bench.measure import bench
    from onnxbuild.building.api import Request
    from onnxbuild.building.wiring import RunOptions
    from onnxbuild.terminal.bench_tables import show_report
    from onnxbuild.terminal.display import make_display

    request = Request(tuple(map(Path, recipes)), only, settings, store)
    options = RunOptions(jobs, memory, timeout)
    with make_display(as_json=False, verbose=False, quiet=quiet, on_stderr=as_json) as display:
        make_executor = executor_of(request.project, executor, options, display)
        found = bench(request, against, options, [display], make_executor=make_executor)
    if as_json:
        click.echo(json.dumps(found.reports, indent=2, sort_keys=True))
    else:
        for recipe, providers in found.reports.items():
            for provider, report in providers.items():
                show_report(recipe, provider, report)
    ctx.exit(found.result.exit_code)
