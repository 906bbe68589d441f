"""Speed and size of PyTorch eager, torch.compile, TorchScript, AOTInductor and ONNX in fp32, fp16, INT8.

Each model's programs are measured in one process on the same feeds and threads, a turn each in every
round, in random order (`onnxbuild bench`); speed is the median of the rounds' paired ratios to
PyTorch eager, with a bootstrap 95 % interval. The first run builds into the store; later ones, and
those after `--build`, only measure. What is printed is Markdown.

    python -m benchmarks.speed [--only minilm resnet50] [--seconds 45] [--threads 2] [--json FILE]
        [--store FOLDER] [--build]
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import onnxruntime
import torch

from benchmarks.side_by_side import machine, markdown
from onnxbuild.bench.measure import bench
from onnxbuild.building.api import Request, build, graph_of
from onnxbuild.building.wiring import RunOptions

ROOT = Path(__file__).parents[1]

WAYS = {
    "pytorch": "PyTorch eager",
    "pytorch-compile": "torch.compile",
    "torchscript": "TorchScript",
    "aotinductor": "AOTInductor",
    "fp32": "ONNX fp32",
    "fp16": "ONNX fp16",
    "int8": "ONNX INT8",
}
"""Name in reports -> in tables."""


@dataclass(frozen=True)
class Subject:
    """A model.

    Attributes:
        title: For people.
        recipe: Below recipes/.
        point: What latency is measured at.
        settings: `--set` in addition to those of all models.
    """

    title: str
    recipe: str
    point: str
    settings: Mapping[str, str] = field(default_factory=dict)


SUBJECTS = {
    "minilm": Subject("MiniLM-L6, 22 M parameters", "bert.yaml", "{batch: 1, sequence: 128}"),
    "digits": Subject(
        "digits CNN, 8 x 8 images",
        "digits.yaml",
        "{batch: 64}",
        {"quantization": "{fp32: none, fp16: fp16, int8: static}"},
    ),
    "resnet50": Subject("ResNet-50, 26 M parameters", "resnet50.yaml", "{batch: 1}"),
    "gpt2": Subject(
        "GPT-2 small, 90 M parameters",
        "gpt2.yaml",
        "{batch: 1, sequence: 64}",
        {"model.args": "{seed: 0, layers: 12, width: 768}"},
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=SUBJECTS, default=list(SUBJECTS))
    parser.add_argument("--seconds", type=float, default=45.0, help="measuring, for each model")
    parser.add_argument("--threads", type=int, default=0, help="of each runtime; 0: all cores")
    parser.add_argument("--store", type=Path, default=ROOT / "build/speed")
    parser.add_argument("--build", action="store_true", help="build what is measured, no more")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if arguments.seconds <= 0 or arguments.threads < 0:
        parser.error("--seconds is over 0, --threads at least 0")
    if arguments.json is not None and not arguments.json.absolute().parent.is_dir():
        parser.error(f"there is no folder {arguments.json.parent}")  # before minutes of measuring
    command = shlex.join(["python", "-m", "benchmarks.speed", *sys.argv[1:]])
    said = f"{machine()}, torch {torch.__version__}, onnxruntime {onnxruntime.__version__}"
    chosen = list(dict.fromkeys(arguments.only))
    for name in chosen:
        _build(SUBJECTS[name], arguments)
    if arguments.build:
        return
    print(f"{said}\n\n    {command}", flush=True)
    reports = {}
    for name in chosen:
        reports[name] = _measured(SUBJECTS[name], arguments)
        print(f"\n{_details(SUBJECTS[name], reports[name])}", flush=True)
    print(f"\n{_headline(reports)}")
    if arguments.json:
        result = {"machine": said, "command": command, "models": reports}
        arguments.json.write_text(f"{json.dumps(result, indent=2)}\n", encoding="utf-8")


def _build(subject: Subject, arguments: argparse.Namespace) -> None:
    """Build what takes part, so that nothing else runs while others are measured.

    Raises:
        SystemExit: Something can't be built.
    """
    request = _request(subject, arguments)
    steps = graph_of(request).steps.values()
    (measurement,) = (step for step in steps if step.kind == "benchmark")
    parts = tuple(dict.fromkeys(each.step for each in measurement.inputs.values()))
    result = build(replace(request, only=parts), RunOptions())
    if result.exit_code:
        sys.exit("\n".join(str(failure.error) for failure in result.report.failures))
    count = len(list(result.report.built))
    print(f"{subject.recipe}: {count or 'no'} steps built", file=sys.stderr)


def _measured(subject: Subject, arguments: argparse.Namespace) -> dict[str, Any]:
    """The benchmark step's report, made now.

    Raises:
        SystemExit: Something can't be measured.
    """
    started_s = time.perf_counter()
    found = bench(_request(subject, arguments), (), RunOptions())
    if found.result.exit_code:
        sys.exit("\n".join(str(failure.error) for failure in found.result.report.failures))
    spent_s = time.perf_counter() - started_s
    print(f"{subject.recipe}: measured in {spent_s:.0f} s", file=sys.stderr)
    (providers,) = found.reports.values()
    report: dict[str, Any] = providers["cpu"]
    return report


def _request(subject: Subject, arguments: argparse.Namespace) -> Request:
    settings = {
        "formats": "[onnx, torchscript, aotinductor]",
        "benchmark.points": f"[{subject.point}]",
        "benchmark.compile": "true",
        "benchmark.threads": str(arguments.threads),
        "benchmark.max_time_s": str(arguments.seconds / len(WAYS)),
        **subject.settings,
    }
    only = ("torchscript", "aotinductor", "fp32", "fp16", "int8")
    recipe = ROOT / "recipes" / subject.recipe
    return Request((recipe,), only, settings, str(arguments.store.resolve()))


def _details(subject: Subject, report: Mapping[str, Any]) -> str:
    """One model's table: latency, ratio, size, and what each takes alone in a process."""
    (point,) = report["points"]
    base = report["models"]["fp32"]["size_bytes"]
    rows = []
    for name, way in WAYS.items():
        result, cost = point["results"][name], report["models"][name]
        size = cost.get("size_bytes")
        rows.append(
            {
                "": way,
                "p50 ms": f"{result['p50_ms']:.3g}{'' if result['stable'] else ' ?'}",
                "p99 ms": f"{result['p99_ms']:.3g}",
                "speed": _ratio(result),
                "size MB": "" if size is None else f"{size / 1e6:.3g}",
                "of fp32": "" if size is None else f"{size / base:.0%}",
                "load s": f"{cost['load_s']:.2g}",
                "first run ms": f"{cost['first_inference_ms']:.3g}",
                "memory MB": f"{cost['steady_rss_growth_bytes'] / 1e6:.0f}",
            }
        )
    host = report["host"]
    noisy = "; ".join(host["noisy"])
    return (
        f"### {subject.title}\n\nAt {point['point']}, {host['threads']} threads"
        f"{f'. NOISY: {noisy}' if noisy else ', quiet'}.\n\n{markdown(rows)}"
    )


def _headline(reports: Mapping[str, Mapping[str, Any]]) -> str:
    """Every model's ratios to PyTorch eager; `?` where the machine was noisy."""
    rows = []
    for name, report in reports.items():
        (point,) = report["points"]
        doubt = " ?" if report["host"]["noisy"] else ""
        ratios = {
            way: f"{_ratio(point['results'][key])}{doubt}"
            for key, way in WAYS.items()
            if key != "pytorch"
        }
        models = report["models"]
        share = models["int8"]["size_bytes"] / models["fp32"]["size_bytes"]
        rows.append({"PyTorch eager = 1": name, **ratios, "INT8's size": f"{share - 1:+.0%}"})
    return markdown(rows)


def _ratio(result: Mapping[str, Any]) -> str:
    low, high = result["speedup_low"], result["speedup_high"]
    interval = "" if low is None else f" ({low:.2f}-{high:.2f})"
    return f"{result['speedup']:.2f}{interval}"


if __name__ == "__main__":
    main()
