"""`onnxbuild diagnose`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from onnxbuild.cli.options import jobs_option, quiet_option, set_option, store_option
from onnxbuild.diagnosis.advice import advice, trial_line
from onnxbuild.terminal.diagnosis_output import diagnosis_document, show_nodes, show_stages
from onnxbuild.terminal.display import print_document
from onnxbuild.terminal.table import say
from onnxbuild.terminal.whole_diagnosis import show_whole, whole_document
from onnxbuild.typed.typed_names import find_name

if TYPE_CHECKING:
    from onnxbuild.diagnosis.trials import RemedyTrial


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
    onnxbuild diagnose seq2seq@pipeline:int8

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

    Of a pipeline, each component in few bits is measured alone, and each of its nodes: what it costs the whole, as KL
    divergence of greedy decoding or drop of the pipeline's `metric`. If its gate fails, the fewest nodes of all
    components that mend it are left in fp32. The nodes of one component have the column `cost` then, and so have those
    of a decoder whose gate fails, by its prompts.

    Exit codes: 0 a diagnosis was made, 1 a step broke, 2 recipe or usage.
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.building.api import Request
    from onnxbuild.building.wiring import RunOptions
    from onnxbuild.diagnosis.diagnose import diagnose
    from onnxbuild.diagnosis.whole import advice_on_whole, diagnose_whole, find_whole
    from onnxbuild.terminal.display import make_display

    asked = find_name(name, store, "VARIANT")
    request = Request((asked.file,), (), settings, store)
    options = RunOptions(jobs, keep_going=True)

    def on_trial(trial: RemedyTrial) -> None:
        if not quiet and not as_json:
            say(trial_line(trial))

    whole = find_whole(request, asked)
    if whole is not None:
        with make_display(as_json=False, verbose=False, quiet=quiet, on_stderr=as_json) as display:
            of_whole = diagnose_whole(
                request, whole, options, [display], bisect=not no_bisect, on_trial=on_trial
            )
        if as_json:
            print_document(whole_document(of_whole))
            return
        show_whole(of_whole, shown)
        for line in advice_on_whole(of_whole):
            say(line)
        return
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
            on_trial=on_trial,
        )
    show_stages(found)
    show_nodes(found, shown, below)
    for line in advice(found):
        say(line)
