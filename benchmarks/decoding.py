"""A Llama's decoding, ms a token, in one run: as exported, fused, in place, int4 in place; without a cache; other people's graphs.

    python benchmarks/decoding.py [--layers 8] [--width 512] [--pasts 128 1024] [--against NAME=MODEL.onnx ...] [--work FOLDER]

The weights are seeded; `FOLDER/weights` is a folder of transformers', of which other tools can make a graph. What is
built stays in FOLDER. All graphs take turns on one thread in random order, at each past one after the other.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime

from onnxbuild.core.recipe import Recipe
from onnxbuild.onnxkit.data.feeds import Feeds, make_feeds
from onnxbuild.onnxkit.data.states import state_inputs
from onnxbuild.onnxkit.sessions.decoding import StatefulRun
from onnxbuild.onnxkit.timing.ratios import ratio_of
from onnxbuild.onnxkit.timing.rounds import measure_turns, summarize_turns
from onnxbuild.recipe.load import load_recipes

RECIPE = """\
version: 1
name: {name}
model: {{transformers: ../weights}}
dynamic_axes:
  batch: {{min: 1, max: 4, example: 1}}
  sequence: {{min: 1, max: {past}, example: 8}}
  past: {{min: 0, max: {past}, example: 16}}
opset: {opset}
export: {{exporter: {exporter}}}
optimize: {{attention: {attention}}}
quantization: {variants}
validate: {{fp32: {{atol: 0.01}}, int4: {{cosine_min: 0, sqnr_db_min: 0}}}}
benchmark: {{measure: false}}
state:
  past_key_values:
    each: {{layer: {layers}, part: [key, value]}}
    shape: [batch, {heads}, past, 64]
    update: {update}
"""
INT4 = "{fp32: none, int4: {mode: weight_only, bits: 4, block_size: 32}}"
KINDS = {
    "exported": {"attention": "exported", "update": "grows"},
    "fused": {"attention": "fused", "update": "grows"},
    "in-place": {"attention": "fused", "update": "in_place", "variants": INT4},
    "in-place-23": {
        "attention": "fused", "update": "in_place", "opset": 23, "exporter": "dynamo",
    },
}  # fmt: skip
"""Recipe -> what it writes; opset 23 by dynamo has norms and rotations as one node each."""
HEAD = 64


def main() -> None:
    """Build what is not built yet, and measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--pasts", type=int, nargs="+", default=[128, 1024])
    parser.add_argument("--seconds", type=float, default=6.0, help="of each graph at each past")
    parser.add_argument("--against", nargs="*", default=[], metavar="NAME=MODEL.onnx")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "decoding")
    asked = parser.parse_args()
    recipes = built(asked.work, asked.layers, asked.width, max(asked.pasts))
    graphs = {
        name: (asked.work / f"artifacts/out/{name}/fp32/model.onnx", recipe)
        for name, recipe in recipes.items()
    }
    in_place = recipes["in-place"]
    graphs["int4 in-place"] = (asked.work / "artifacts/out/in-place/int4/model.onnx", in_place)
    for each in asked.against:
        name, _, path = each.partition("=")
        graphs[name] = (Path(path), recipes["exported"])
    for past in asked.pasts:
        calls = {name: decoding(*graph, past) for name, graph in graphs.items()}
        calls["without a cache"] = recomputing(*graphs["exported"], past)
        turns = measure_turns(calls, warmup=3, min_samples=30, max_time_s=asked.seconds)
        print(f"\npast {past}")
        for name, found in turns.items():
            ratio = ratio_of(turns["exported"], found)
            shown = f"{ratio.value:.2f} x [{ratio.low:.2f} to {ratio.high:.2f}]"
            print(f"{name:18} {summarize_turns(found).p50_ms:8.2f} ms  {shown}")


def built(work: Path, layers: int, width: int, past: int) -> dict[str, Recipe]:
    """The recipes, after `onnxbuild run` of each."""
    save_weights(work / "weights", layers, width, past)
    folder = work / "recipes"
    folder.mkdir(parents=True, exist_ok=True)
    (work / "pyproject.toml").touch()
    recipes = {}
    for name, written in KINDS.items():
        file = folder / f"{name}.yaml"
        file.write_text(
            RECIPE.format(
                name=name, past=past, layers=layers, heads=width // HEAD,
                **{"variants": "{fp32: none}", "opset": 18, "exporter": "torchscript"} | written,
            )
        )  # fmt: skip
        subprocess.run(
            [sys.executable, "-m", "onnxbuild", "run", str(file), "--quiet"], check=True
        )
        recipes[name] = load_recipes(file, project=work).recipes[0]
    return recipes


def save_weights(folder: Path, layers: int, width: int, past: int) -> None:
    """Write a Llama with seeded weights, unless it is there."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    if (folder / "config.json").exists():
        return
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=4096, hidden_size=width, intermediate_size=2 * width, num_hidden_layers=layers,
        num_attention_heads=width // HEAD, num_key_value_heads=width // HEAD,
        max_position_embeddings=2 * past + 16, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)


def opened(model: Path) -> onnxruntime.InferenceSession:
    """A session on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def decoding(model: Path, recipe: Recipe, past: int) -> Callable[[], object]:
    """One new token after a past, whose tensors are in ONNX Runtime's memory."""
    feeds = feeds_of(recipe, 1, past)
    run = StatefulRun(opened(model), recipe.inputs, past + 1)
    run(feeds)
    state = {each.name: each for each in state_inputs(recipe.inputs)}
    held = {
        name: onnxruntime.OrtValue.ortvalue_from_numpy(array)
        for name, array in feeds.items()
        if name in state and not state[name].in_place
    }
    others = {name: array for name, array in feeds.items() if name not in state}
    return lambda: run(others | held)


def recomputing(model: Path, recipe: Recipe, past: int) -> Callable[[], object]:
    """One new token, all before it computed again."""
    feeds = feeds_of(recipe, past + 1, 0)
    session = opened(model)
    return lambda: session.run(["logits"], feeds)


def feeds_of(recipe: Recipe, new: int, past: int) -> Feeds:
    """Feeds of one text."""
    sizes = {"batch": 1, "sequence": new, "past": past}
    feeds = make_feeds(recipe.inputs, sizes, seed=0)
    return {name: np.ascontiguousarray(array) for name, array in feeds.items()}


if __name__ == "__main__":
    main()
