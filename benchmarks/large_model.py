"""What a model of real size costs: peak memory and time of each step, bytes on disk and in the store.

A GPT-2 with the widths of GPT-2 large, as many layers as the size asks for, and seeded weights goes
through every mode, one step at a time, on short sequences: memory is what is measured. Peaks are
the kernel's of each step's process, mapped files included, as the run's own events tell them.

    python -m benchmarks.large_model [--gib 3] [--modes fp32 fp16 dynamic ...] [--only STEP ...]
        [--folder build/large_model] [--memory 24GiB] [--keep] [--json FILE]

The folder takes about ten times the model. With --keep it is left there, and a second run of the
same size goes on where the first was stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.side_by_side import machine
from onnxbuild.core.action import ActionResult

ROOT = Path(__file__).parents[1]
WIDTH, HEADS, POSITIONS, VOCABULARY = 1280, 20, 64, 50257
"""Of GPT-2 large, but for the positions."""

_LAYER_PARAMETERS = 12 * WIDTH * WIDTH + 13 * WIDTH

MODEL = f'''\
"""GPT-2 of any depth, its weights drawn by seed."""

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel


class NextTokens(torch.nn.Module):
    """The logits alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids).logits


def load(layers):
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size={VOCABULARY}, n_positions={POSITIONS}, n_embd={WIDTH}, n_layer=layers,
        n_head={HEADS}, use_cache=False, attn_implementation="eager", bos_token_id=0,
        eos_token_id=0,
    )
    return NextTokens(GPT2LMHeadModel(config).eval())


def feeds(count=4):
    for n in range(count):
        ids = np.random.default_rng(n).integers(0, {VOCABULARY}, (1, 16))
        yield {{"input_ids": ids}}
'''

RECIPE = """\
version: 1
name: large
model: {{entrypoint: models/large.py:load, args: {{layers: {layers}}}}}
dummy_inputs:
  input_ids: {{dtype: int64, shape: [batch, sequence], low: 0, high: {vocabulary}}}
outputs: [logits]
dynamic_axes:
  batch: {{min: 1, max: 2, example: 1}}
  sequence: {{min: 1, max: 16, example: 8}}
opset: 18
calibration:
  data: models/large.py:feeds
  samples: 4
quantization:
{variants}
# random weights say nothing of accuracy; whether anything is refused is not the question here
validate: {{int8: {{cosine_min: -1.0}}, int4: {{cosine_min: -1.0}}, fp16: {{atol: 10.0, rtol: 1.0}}}}
benchmark: {{max_time_s: 2.0, min_samples: 3, warmup: 1}}
"""

SENSITIVITY = """\
fidelity: {data: models/large.py:feeds, samples: 2}
sensitivity: {samples: 2, runs: 20}
"""
"""What the mode `sensitive` asks for besides: as few runs as there can be, since memory is measured."""

MODES = {
    "fp32": "none",
    "fp16": "fp16",
    "mixed": "{mode: fp16, keep_fp32: 2}",
    "dynamic": "dynamic",
    "balanced": "{mode: dynamic, balance: true}",
    "rounded": "{mode: dynamic, rounding: gptq}",
    "sensitive": "{mode: dynamic, keep_most_sensitive: 0.05}",
    "static": "static",
    "static-balanced": "{mode: static, balance: true}",
    "corrected": "{mode: static, bias_correction: true}",
    "int8-weights": "{mode: weight_only, bits: 8}",
    "int4-weights": "{mode: weight_only, bits: 4}",
    "int4-hqq": "{mode: weight_only, bits: 4, method: hqq}",
    "int4-gptq": "{mode: weight_only, bits: 4, method: gptq}",
}


@dataclass(frozen=True)
class StepCost:
    """What a step took.

    Attributes:
        peak_bytes: Greatest resident memory of its process, mapped files included.
        failure: What it said; empty if it did not fail.
    """

    step: str
    wall_s: float
    peak_bytes: int
    failure: str = ""


@dataclass(frozen=True)
class DiskUse:
    """Bytes on disk after a run.

    Attributes:
        models: Of the distinct models (by content) that steps made.
        named: Of all models that steps made, and of those in bundles, each as often as it comes.
        blobs: In the store.
        views: Of what is laid out for people, which is a copy where the filesystem shares no blocks.
    """

    models: int
    named: int
    blobs: int
    views: int


def main() -> None:
    """Make the project, run it, tell what each step took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, default=3.0, help="of fp32 weights, about")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--only", nargs="*", default=[], help="as `onnxbuild run --only`")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "large_model")
    parser.add_argument("--memory", default="24GiB", help="as `onnxbuild run --memory`")
    parser.add_argument("--timeout", default="7200", help="as `onnxbuild run --timeout`")
    parser.add_argument(
        "--keep", action="store_true", help="leave the project and its store there"
    )
    parser.add_argument("--json", type=Path, help="write what was measured to this file, too")
    arguments = parser.parse_args()
    layers = layers_of(arguments.gib)
    recipe = write_project(arguments.folder, layers, arguments.modes)
    store = arguments.folder / "artifacts"
    print(f"{machine()}; GPT-2 large's widths, {layers} layers", flush=True)
    try:
        limits = ["--memory", arguments.memory, "--timeout", arguments.timeout]
        only = [word for name in arguments.only for word in ("--only", name)]
        code, wall_s = run_recipe(recipe, [*limits, *only])
        costs = costs_of(store)
        model_bytes = exported_bytes(store)
        disk = disk_use(store)
        show(costs, model_bytes, disk)
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        print(f"{wall_s:.0f} s in all; the largest process took {_gib(largest)}")
        if arguments.json:
            found = {
                "machine": machine(),
                "layers": layers,
                "model_bytes": model_bytes,
                "wall_s": round(wall_s, 1),
                "largest_process_bytes": largest,
                "disk": asdict(disk),
                "steps": [asdict(each) for each in costs],
            }
            arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    finally:
        if not arguments.keep:
            shutil.rmtree(arguments.folder, ignore_errors=True)
    sys.exit(code)


def layers_of(gib: float) -> int:
    """Layers that make a model of about `gib` GiB in fp32; one at least."""
    embedded = (VOCABULARY + POSITIONS) * WIDTH
    return max(1, round((gib * 2**30 / 4 - embedded) / _LAYER_PARAMETERS))


def write_project(folder: Path, layers: int, modes: Sequence[str]) -> Path:
    """The recipe's path; what is there already is left as it is where it says the same."""
    variants = "\n".join(f"  {name}: {MODES[name]}" for name in modes)
    recipe = RECIPE.format(layers=layers, vocabulary=VOCABULARY, variants=variants)
    recipe += SENSITIVITY if "sensitive" in modes else ""
    for name, text in (("pyproject.toml", ""), ("models/large.py", MODEL), ("large.yaml", recipe)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    return folder / "large.yaml"


def run_recipe(recipe: Path, options: Sequence[str]) -> tuple[int, float]:
    """Run one step at a time; the exit code, and the wall time in seconds."""
    command = [
        *(sys.executable, "-m", "onnxbuild", "run", recipe.name, "--jobs", "1"),
        *("--keep-going", *options),
    ]
    started_s = time.perf_counter()
    done = subprocess.run(
        command, cwd=recipe.parent, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
    )
    return done.returncode, time.perf_counter() - started_s


def costs_of(store: Path) -> list[StepCost]:
    """What each step took when it was built last, in the order in which they were built."""
    costs: dict[str, StepCost] = {}
    for events in sorted(store.glob("runs/*/events.jsonl")):
        for line in events.read_text().splitlines():
            cost = _cost_of(json.loads(line))
            if cost is not None:
                costs.pop(cost.step, None)
                costs[cost.step] = cost
    return list(costs.values())


def _cost_of(event: Mapping[str, Any]) -> StepCost | None:
    name = str(event.get("step", "")).partition(":")[2]
    if event["type"] == "step_finished":
        return StepCost(name, event["wall_s"], event["peak_bytes"])
    if event["type"] == "step_failed":
        return StepCost(name, 0.0, 0, event["what"])
    return None


def exported_bytes(store: Path) -> int:
    """The largest model that a step made: fp32, as exported or fused."""
    return max((sum(files.values()) for files in _models(store)), default=0)


def disk_use(store: Path) -> DiskUse:
    """What lies on disk, and what of it are models."""
    models = _models(store)
    return DiskUse(
        models=sum({sha: size for files in models for sha, size in files.items()}.values()),
        named=sum(size for files in models for size in files.values()),
        blobs=_bytes_below(store / "cas"),
        views=_bytes_below(store / "out"),
    )


def _models(store: Path) -> list[dict[str, int]]:
    """Of each model that a step made, and of each bundle's: blob -> size."""
    found = []
    for path in sorted(store.glob("ac/*/*.json")):
        result = ActionResult.from_json(json.loads(path.read_text())["traces"][0])
        for artifact in result.outputs.values():
            files = {d.sha256: d.size_bytes for name, d in artifact.files if "model.onnx" in name}
            found += [files] if files else []
    return found


def _bytes_below(folder: Path) -> int:
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())


def show(costs: Sequence[StepCost], model_bytes: int, disk: DiskUse) -> None:
    """A table of steps, and where the bytes are."""
    print(f"the model is {_gib(model_bytes)} in fp32")
    print(f"{'step':<28}{'time':>8}{'peak':>12}{'of the model':>14}")
    for each in costs:
        if each.failure:
            print(f"{each.step:<28}  FAILED: {each.failure}")
        else:
            ratio = each.peak_bytes / model_bytes if model_bytes else 0.0
            print(
                f"{each.step:<28}{each.wall_s:>6.0f} s{_gib(each.peak_bytes):>12}{ratio:>12.2f} x"
            )
    print(
        f"store: {_gib(disk.blobs)}, of which {_gib(disk.models)} distinct models; steps and bundles "
        f"name {_gib(disk.named)} of models; views: {_gib(disk.views)}"
    )


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.2f} GiB"


if __name__ == "__main__":
    main()
