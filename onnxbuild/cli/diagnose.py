"""`onnxbuild diagnose`."""

from __future__ import annotations

from collections.abc import Mapping

import click

from onnxbuild.cli.options import jobs_option, quiet_option, set_option, store_option
from onnxbuild.diagnosis.advice import advice, trial_line
from onnxbuild.terminal.diagnosis_output import diagnosis_document, show_nodes, show_stages
from onnxbuild.terminal.display import print_document
from onnxbuild.terminal.table import say
from onnxbuild.typed.typed_names import find_name


@click.command("diagnose")
@click.argument("name", metavar="RECIPE:VARIANT")
@set_option()
@store_option()
@click.option(
    "--points",
    type=click.IntRange(1),
    default=4,
    show_default=True,
    help="Reference points that nodes are compared at: those with the most error.",
)
@click.option(
    "--nodes",
    "shown",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Nodes to show.",
)
@click.option(
    "--below",
    type=float,
    default=20.0,
    show_default=True,
    metavar="DB",
    help="Name the first node whose output has a signal-to-noise ratio below this.",
)
@click.option(
    "--trial",
    default="",
    metavar="NAME",
    help="For a variant with `mode: auto`: the trial to diagnose [default: the chosen one].",
)
@click.option("--no-bisect", is_flag=True, help="Only look; build no variant with nodes left out.")
@jobs_option()
@click.option("--json", "as_json", is_flag=True, help="Print the diagnosis as JSON.")
@quiet_option()
def command(
    *,
    name: str,
    settings: Mapping[str, str],
    store: str | None,
    points: int,
    shown: int,
    below: float,
    trial: str,
    no_bisect: bool,
    jobs: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Find the step and the nodes that a variant's error comes from, and the nodes to leave in fp32.

    \b
    onnxbuild diagnose bert:int8
    onnxbuild diagnose bert:int8 --set quantization.int8.per_channel=false
    onnxbuild diagnose bert:int8 --set quantization.int8.validate.cosine_min=0.99

    The variant is built, or taken from the store. Each step's model is compared with the model
    before it, at the recipe's reference points. The first step that adds a tenth of the error or
    more is at fault. Across that step, every tensor that both models have is compared, in the
    graph's order:

    \b
      in dB   signal-to-noise ratio (SQNR) of the node's worst input
      out dB  of its worst output; 20 dB is an error of 10 %, 40 dB of 1 %
      added   noise that came in at this node, in percent of its output's energy
      alone   noise at the model's output if only this node is the variant's

    If a gate fails, the variant is built again with the worst 1, 2, 4, ... nodes left in fp32 until
    every failing gate passes, then bisected; all of that is cached. It ends in YAML to paste. For a
    variant that passes but should be better, ask for more with --set, as in the third line.

    For a variant with `mode: auto`, the search runs first (all of it is cached). Then the chosen trial,
    else the nearest one, is diagnosed, or the one that --trial names. If it misses the search's goal,
    the fewest nodes that meet the goal are left in fp32: those that cost most on the `fidelity` data.
    The search's own rule judges, and the cost in size and speed is measured. The YAML is a variant of
    that trial's mode, to replace the search or to add to it.

    Exit codes: 0 a diagnosis was made, 1 a step broke, 2 recipe or usage.
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.building.api import Request
    from onnxbuild.building.wiring import RunOptions
    from onnxbuild.diagnosis.diagnose import diagnose
    from onnxbuild.terminal.display import make_display

    asked = find_name(name, store, "VARIANT")
    request = Request((asked.file,), (), settings, store)
    options = RunOptions(jobs, keep_going=True)
    if as_json:
        with make_display(as_json=False, verbose=False, quiet=quiet, on_stderr=True) as display:
            found = diagnose(
                request, asked, options, [display],
                trial=trial, points=points, bisect=not no_bisect,
            )  # fmt: skip
        print_document(diagnosis_document(found, below))
        return
    with make_display(as_json=False, verbose=False, quiet=quiet) as display:
        found = diagnose(
            request,
            asked,
            options,
            [display],
            trial=trial,
            points=points,
            bisect=not no_bisect,
            on_trial=lambda trial: None if quiet else say(trial_line(trial)),
        )
    show_stages(found)
    show_nodes(found, shown, below)
    for line in advice(found):
        say(line)
