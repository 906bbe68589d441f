"""`onnxbuild diagnose`."""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from onnxbuild.cli.names import split_name
from onnxbuild.cli.options import jobs_option, set_option, store_option
from onnxbuild.cli.table import format_table

if TYPE_CHECKING:
    from onnxbuild.diagnosis.diagnose import Diagnosis
    from onnxbuild.diagnosis.trials import Trial
    from onnxbuild.onnxkit.tracing import NodeError

_SUGGESTED = 4
_PERCENT = 100


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
    help="Of a variant with `mode: auto`: the trial to look at. Default: the one that was chosen.",
)
@click.option("--no-bisect", is_flag=True, help="Only look; build no variant with nodes left out.")
@jobs_option()
@click.option("--json", "as_json", is_flag=True, help="Print the diagnosis as JSON.")
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
) -> None:
    """Say where a variant's error comes from: the step, the nodes, and what to leave out.

    \b
    onnxbuild diagnose bert:int8
    onnxbuild diagnose bert:int8 --set quantization.int8.per_channel=false
    onnxbuild diagnose bert:int8 --set quantization.int8.validate.cosine_min=0.99

    The variant is built, or taken from the store. Each step's model is held against the model
    before it, at the recipe's reference points; the first that brings in a tenth of the error or
    more is at fault. Across that step, every tensor that both models have is compared, in the
    graph's order:

    \b
      in dB   signal-to-noise ratio (SQNR) of the node's worst input
      out dB  of its worst output; 20 dB is an error of a tenth, 40 dB of a hundredth
      added   noise that came in at this node, in percent of its output's energy
      alone   noise at the model's output if this node alone is as the variant has it

    If a gate fails, the variant is built again with the worst 1, 2, 4, ... nodes left in fp32 until
    every failing gate passes, then bisected; all of that is cached. It ends in YAML to paste. For a
    variant that passes but should be better, ask for more with --set, as in the third line.

    A variant with `mode: auto` is searched for first (all of that is cached); then the trial that was
    chosen, or came nearest, is looked at, or the one that --trial names. The YAML is a variant of
    that trial's mode, to be put in the search's place or beside it.

    Exit codes: 0 a diagnosis was made, 1 a step broke, 2 recipe or usage.
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.api import Request
    from onnxbuild.cli.display import make_display
    from onnxbuild.diagnosis.diagnose import diagnose
    from onnxbuild.wiring import RunOptions

    recipe, _ = split_name(name)
    request = Request((recipe,), (), settings, store)
    options = RunOptions(jobs, keep_going=True)
    if as_json:
        found = diagnose(request, name, options, trial=trial, points=points, bisect=not no_bisect)
        click.echo(json.dumps(_as_json(found, below), indent=2))
        return
    with make_display(as_json=False, verbose=False) as display:
        found = diagnose(
            request,
            name,
            options,
            [display],
            trial=trial,
            points=points,
            bisect=not no_bisect,
            tell=_tell,
        )
    _show_stages(found)
    _show_nodes(found, shown, below)
    _show_cure(found)


def _tell(trial: Trial) -> None:
    end = "passes" if trial.passed else f"fails: {trial.why}"
    cosine = "" if trial.cosine_min is None else f", least cosine {trial.cosine_min:.6f}"
    click.echo(f"try     {trial.remedy.what}{cosine}: {end}")


def _show_stages(found: Diagnosis) -> None:
    from onnxbuild.diagnosis.written import flow, written_variant

    click.echo("")
    if found.trial:
        click.echo(
            f"'{found.chain.variant}' is looked at as its trial '{found.trial}', written out and "
            f"judged as {flow(written_variant(found.recipe, found.variant))}"
        )
    for gate, what in found.breaches:
        click.echo(f"{gate} fails: {what}")
    if not found.breaches:
        aside = "; the goal of the search is none of them" if found.trial else ""
        click.echo(f"every gate passes{aside}")
    rows = [
        {
            "step": stage.step if stage.kind else "all of it",
            "against": stage.against,
            "max abs": f"{stage.error.max_abs:.2e}",
            "cosine": f"{stage.error.cosine_min:.6f}",
            "SQNR dB": _decibels(stage.error.ratio),
            "share": f"{stage.share:.0%}" if stage.share <= 1 else ">100%",
        }
        for stage in found.stages
    ]
    click.echo("")
    for line in format_table(rows):
        click.echo(line)
    for stage in found.stages[:-1]:
        if stage.error.lost:
            click.echo(f"{stage.step}: {stage.error.lost}")
    click.echo("")
    if found.fault is None:
        click.echo("the outputs have no error to look for")
    else:
        stage = found.stages[found.fault]
        click.echo(f"first step where the error appears: {stage.step} ({stage.kind})")


def _show_nodes(found: Diagnosis, shown: int, below: float) -> None:
    from onnxbuild.diagnosis.remedies import effect_of

    if not found.nodes:
        return
    by_effect = any(found.effects.values())
    worst = heapq.nlargest(
        shown,
        found.nodes,
        key=lambda each: effect_of(each, found.effects) if by_effect else each.added,
    )
    rows = [
        {
            "node": each.name,
            "operator": each.op_type,
            "in dB": _decibels(each.before),
            "out dB": each.lost or _decibels(each.after),
            "cosine": f"{each.cosine:.6f}",
            "added": _percent(each.added),
            "alone": _percent(found.effects.get(each.name, 0.0)),
        }
        for each in worst
        if each.added > 0 or each.name in found.effects
    ]
    click.echo(
        f"nodes where most of it comes in, of {len(found.nodes)} compared at "
        f"{', '.join(found.points) or 'every point'}:"
    )
    click.echo("")
    for line in format_table(rows):
        click.echo(line)
    click.echo("")
    holding = [each for each in found.nodes if each.bodies]
    if holding:
        names = ", ".join(f"{each.name} ({each.op_type})" for each in holding)
        click.echo(
            f"{sum(each.bodies for each in holding)} nodes are in bodies, whose values can't be "
            f"compared one by one; what runs them stands for them: {names}"
        )
    first = _first_below(found, below)
    if first is None:
        click.echo(f"no node's output is below {below:g} dB")
    elif first.lost:
        click.echo(f"first node with values lost: {first.name} ({first.op_type}): {first.lost}")
        if not any(stage.error.lost for stage in found.stages):
            click.echo(
                f"  ('{found.chain.target.name}' fuses it away and computes it in fp32; where fp16 is "
                "computed as it is written, the outputs are lost)"
            )
    else:
        click.echo(
            f"first node below {below:g} dB: {first.name} ({first.op_type}), "
            f"{_decibels(first.before)} -> {_decibels(first.after)} dB"
        )
        if first.behind:
            click.echo(
                f"  (it stands for {', '.join(first.behind)}, too, whose own values the other model "
                f"has not; that one makes it with {first.now})"
            )


def _first_below(found: Diagnosis, below: float) -> NodeError | None:
    """Lost values come first: what is after them says nothing."""
    lost = next((each for each in found.nodes if each.lost), None)
    return lost or next((each for each in found.nodes if each.after_db < below), None)


def _show_cure(found: Diagnosis) -> None:
    if found.fault is None:
        return
    for line in _advice(found):
        click.echo(line)


def _advice(found: Diagnosis) -> list[str]:
    from onnxbuild.diagnosis.remedies import keep_in_fp32, keeps_nodes, optimize_less

    assert found.fault is not None
    step = found.chain.models[found.fault]
    if found.cure is not None:
        return [
            f"the least that passes: {found.cure.remedy.what}; paste this:",
            "",
            *found.cure.remedy.yaml,
        ]
    if found.trials:
        last = found.trials[-1].remedy.what
        return [
            f"none of {len(found.trials)} builds passes, the last with {last}:",
            "another mode or tolerance suits this model better",
        ]
    if step.kind == "export":
        return [
            "the export itself differs from PyTorch; compare the exporters:",
            "",
            "export: {exporter: torchscript}   # or dynamo",
        ]
    if step.kind == "optimize":
        less = optimize_less(found.recipe, found.variant)
        return ["not tried by building; what to do less of:", "", *less[0].yaml] if less else []
    if not found.groups or not keeps_nodes(step.kind):
        return []
    names = [name for group in found.groups[:_SUGGESTED] for name in group]
    yaml = keep_in_fp32(found.recipe, found.variant, step, names).yaml
    return ["not tried by building; the worst nodes to leave in fp32:", "", *yaml]


def _decibels(ratio: float) -> str:
    if math.isinf(ratio):
        return "lost"
    return "exact" if ratio == 0.0 else f"{-10.0 * math.log10(ratio):.1f}"


def _percent(ratio: float) -> str:
    if math.isinf(ratio):
        return "lost"
    return f"{ratio * _PERCENT:.3g}%" if ratio > 0 else "-"


def _as_json(found: Diagnosis, below: float) -> dict[str, object]:
    first = _first_below(found, below)
    return {
        "variant": f"{found.chain.recipe}:{found.chain.variant}",
        "trial": found.trial or None,
        "failing": [{"gate": gate, "what": what} for gate, what in found.breaches],
        "stages": [
            {
                "step": stage.step,
                "against": stage.against,
                "max_abs": stage.error.max_abs,
                "cosine_min": stage.error.cosine_min,
                "sqnr": _decibels(stage.error.ratio),
                "share": stage.share,
                "lost": stage.error.lost,
            }
            for stage in found.stages
        ],
        "fault": None if found.fault is None else found.stages[found.fault].step,
        "first_below": None if first is None else first.name,
        "nodes": [
            {
                "name": each.name,
                "op_type": each.op_type,
                "in_db": _decibels(each.before),
                "out_db": _decibels(each.after),
                "cosine": each.cosine,
                "lost": each.lost,
                "behind": list(each.behind),
                "now": each.now,
                "body_nodes": each.bodies,
                "changed_in_bodies": list(each.inside),
            }
            for each in found.nodes
        ],
        "trials": [
            {"what": each.remedy.what, "passed": each.passed, "cosine_min": each.cosine_min}
            for each in found.trials
        ],
        "yaml": [] if found.fault is None else _advice(found),
    }
