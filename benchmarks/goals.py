"""Run `mode: auto` on MiniLM at several goals: which way it chooses, how fast, how large.

Runs recipes/minilm_search.yaml with one search a goal, all over the same trials, which are measured
once, side by side. Half of the held-out sentences chooses; what is shown is judged on the other
half. Speed is compared with plain dynamic INT8, per channel (the trial `int8-dynamic`): median of the
rounds' paired ratios, with a 95 % interval. Searches and models are cached in the recipe's store.

    python -m benchmarks.goals [--goals 0.99 0.995 0.999] [--trials 14] [--seconds 3] [--again]
"""

from __future__ import annotations

import argparse
import json
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.side_by_side import machine
from onnxbuild.adapters.console.sinks import PlainLines
from onnxbuild.building.api import BuildResult, Request, build
from onnxbuild.building.wiring import RunOptions
from onnxbuild.core.step import REPORT_FILE
from onnxbuild.onnxkit.timing.ratios import ratio_over
from onnxbuild.onnxkit.timing.rounds import SAMPLES_FILE, Turns, read_samples

RECIPE = Path(__file__).parents[1] / "recipes" / "minilm_search.yaml"
PLAIN = "int8-dynamic"
KINDS = {"mean": "cosine_mean", "worst": "cosine_min"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--goals", type=float, nargs="+", default=[0.99, 0.995, 0.999])
    parser.add_argument("--trials", type=int, default=14, help="ways that each search tries")
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="spent on each way: up to four times"
    )
    parser.add_argument("--again", action="store_true", help="measure again, whatever is cached")
    arguments = parser.parse_args()
    result = search(arguments)
    trials = _only([n for n in result.graph.steps if n.endswith("/trials")])
    folder = _artifact(result, trials)
    report = json.loads((folder / REPORT_FILE).read_text())
    points = [point["point"] for point in report["points"]]

    def turns(name: str) -> list[Turns]:
        return [read_samples(folder, point, name) for point in points]

    print(f"\n{machine()}; {report['host']['threads']} threads; {', '.join(points)}")
    for why in report["host"]["noisy"]:
        print(f"**noisy: {why}**")
    print("\n| goal | chosen | mean | worst | speed | 95 % | MB | drop of Spearman |")
    print("|---|---|---|---|---|---|---|---|")
    plain = turns(PLAIN)
    for name, found in searches(result).items():
        row = found["row"]
        own = turns(row["name"])
        speed = ratio_over(list(zip(plain, own, strict=True)))
        judged = row["judging"]
        chosen = row["name"] if found["holds"] else f"none; nearest {row['name']}"
        print(
            f"| {name} | {chosen} | {judged['cosine_mean']:.5f} | {judged['cosine_min']:.4f} | "
            f"{speed.value:.3f} | {speed.low:.3f}-{speed.high:.3f} | "
            f"{row['size_bytes'] / 1e6:.1f} | {found['drop']} |"
        )


def search(arguments: argparse.Namespace) -> BuildResult:
    """Run all searches; those that miss their goal are part of what is shown."""
    variants = ", ".join(
        f"{kind}-{goal:g}: {{mode: auto, trials: {arguments.trials}, goal: {{{bound}: {goal}}}, "
        "include: [dynamic, static, weight_only, fp16], validate: {cosine_min: 0.5}}"
        for kind, bound in KINDS.items()
        for goal in arguments.goals
    )
    settings = {
        "quantization": f"{{{variants}}}",
        "benchmark.max_time_s": str(arguments.seconds),
        "evaluate.max_drop": "1",
    }
    if arguments.again:
        settings["benchmark.warmup"] = str(3 + uuid.uuid4().int % 97)
    options = RunOptions(keep_going=True)
    return build(Request((RECIPE,), (), settings), options, [PlainLines(_progress)])


def searches(result: BuildResult) -> dict[str, dict[str, Any]]:
    """Search -> its row of what was chosen or came nearest, and the metric's drop."""
    found = {}
    for name, step in result.graph.steps.items():
        if step.kind != "choose" or name not in result.report.results:
            continue
        action = result.report.results[name]
        folder = _folder(result, dict(action.outputs["search"].files))
        report = json.loads(folder[REPORT_FILE].read_text())
        row = next(r for r in report["trials"] if r["name"] == action.metrics["chosen"])
        variant = name.partition(":")[2].partition("/")[0]
        scored = result.report.results.get(
            result.graph.resolve(name.replace("/choose", "/evaluate"))
        )
        drop = "-" if scored is None else f"{scored.metrics['drop']:.5f}"
        found[variant] = {"row": row, "holds": report["chosen"] is not None, "drop": drop}
    return found


def _artifact(result: BuildResult, step: str) -> Path:
    """A folder with the files of a step's only output."""
    (artifact,) = result.report.results[step].outputs.values()
    target = result.store / "tmp" / f"goals-{uuid.uuid4().hex}"
    target.mkdir(parents=True)
    for name, path in _folder(result, dict(artifact.files)).items():
        if name in {REPORT_FILE, SAMPLES_FILE}:
            (target / name).write_bytes(path.read_bytes())
    return target


def _folder(result: BuildResult, files: Mapping[str, Any]) -> dict[str, Path]:
    cas = result.store / "cas" / "sha256"
    return {name: cas / each.sha256[:2] / each.sha256 for name, each in files.items()}


def _only(names: Sequence[str]) -> str:
    if len(names) != 1:
        raise SystemExit(f"expected one measurement of all trials, found {', '.join(names)}")
    return names[0]


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
