"""A decoder's ms a token, in one run: as exported, fused, in place, int4 in place; without a cache; other people's graphs.

    python benchmarks/decoding.py [--layers 8] [--width 512] [--pasts 128 1024] [--threads 1] [--against NAME=MODEL.onnx ...]
        [--weights FOLDER] [--kinds exported in-place ...] [--work FOLDER]

The weights are a seeded Llama's, or those of a decoder in a folder of transformers', of which other tools can make a graph, too: the
seeded ones are in WORK/weights. What is built stays in WORK. All graphs take turns in random order, at each past one after the other.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from onnxbuild.core.recipe import DummyInput, Recipe
from onnxbuild.onnxkit.data.feeds import Feeds, make_feeds
from onnxbuild.onnxkit.data.states import state_inputs
from onnxbuild.onnxkit.model.graphs import all_nodes
from onnxbuild.onnxkit.sessions.decoding import StatefulRun
from onnxbuild.onnxkit.timing.ratios import ratio_of
from onnxbuild.onnxkit.timing.rounds import measure_turns, summarize_turns
from onnxbuild.recipe.load import load_recipes

RECIPE = """\
version: 1
name: {name}
model: {{transformers: {weights}}}
dynamic_axes:
  batch: {{min: 1, max: 4, example: 1}}
  sequence: {{min: 1, max: {past}, example: 8}}
  past: {{min: 0, max: {past}, example: 16}}
opset: {opset}
export: {{exporter: {exporter}}}
optimize: {{attention: {attention}}}
quantization: {variants}
validate: {{fp32: {{atol: 0.01}}, int4: {{cosine_min: -1, sqnr_db_min: -100}}}}
benchmark: {{measure: false}}
state:
  past_key_values:
    each: {{layer: {layers}, part: [key, value]}}
    shape: [batch, {heads}, past, {size}]
    update: {update}
"""
INT4 = (
    "{fp32: none, int4: {mode: weight_only, bits: 4, block_size: 32, op_types: [MatMul, Gather]}}"
)
KINDS = {
    "exported": {"attention": "exported", "update": "grows"},
    "fused": {"attention": "fused", "update": "grows"},
    "in-place": {"attention": "fused", "update": "in_place", "variants": INT4},
    "in-place-23": {
        "attention": "fused", "update": "in_place", "variants": INT4, "opset": 23, "exporter": "dynamo",
    },
}  # fmt: skip
"""Recipe -> what it writes; opset 23 by dynamo has norms and rotations as one node each."""
HEAD = 64
WRITES_IN_PLACE = "GroupQueryAttention"


def main() -> None:
    """Build what is not built yet, and measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--pasts", type=int, nargs="+", default=[128, 1024])
    parser.add_argument("--seconds", type=float, default=6.0, help="of each graph at each past")
    parser.add_argument("--against", nargs="*", default=[], metavar="NAME=MODEL.onnx")
    parser.add_argument("--to", help="the graph that ratios are to; else the first")
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--weights", type=Path, help="a folder of transformers'")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "decoding")
    asked = parser.parse_args()
    weights = asked.weights and asked.weights.absolute()
    if weights is None:
        weights = asked.work.absolute() / "weights"
        save_weights(weights, asked.layers, asked.width, max(asked.pasts))
    recipes = built(asked.work, asked.kinds, weights, max(asked.pasts))
    graphs = {}
    for name, recipe in recipes.items():
        for variant in recipe.variants:
            model = asked.work / f"artifacts/out/{name}/{variant.name}/model.onnx"
            label = name if variant.name == "fp32" else f"{variant.name} {name}"
            graphs[label] = (model, recipe.inputs)
    inputs = next(iter(recipes.values())).inputs
    for each in asked.against:
        name, _, path = each.partition("=")
        graphs[name] = (Path(path), bound_as_made(Path(path), inputs))
    for threads, past in itertools.product(asked.threads, asked.pasts):
        calls = {name: decoding(*graph, past, threads) for name, graph in graphs.items()}
        if "exported" in graphs:
            calls["without a cache"] = recomputing(*graphs["exported"], past, threads)
        turns = measure_turns(calls, warmup=3, min_samples=30, max_time_s=asked.seconds)
        print(f"\npast {past}, threads {threads}")
        for name, found in turns.items():
            ratio = ratio_of(turns[asked.to or next(iter(turns))], found)
            shown = f"{ratio.value:.2f} x [{ratio.low:.2f} to {ratio.high:.2f}]"
            print(f"{name:18} {summarize_turns(found).p50_ms:8.2f} ms  {shown}")


def bound_as_made(model: Path, inputs: Sequence[DummyInput]) -> Sequence[DummyInput]:
    """The inputs that a graph takes, its state in place if its attention can write there."""
    made = onnx.load(str(model), load_external_data=False)
    writes = any(each.op_type == WRITES_IN_PLACE for each in all_nodes(made))
    names = {each.name for each in made.graph.input}
    return tuple(
        replace(each, growth=each.growth and replace(each.growth, in_place=writes))
        for each in inputs
        if each.name in names
    )


def built(work: Path, kinds: Sequence[str], weights: Path, past: int) -> dict[str, Recipe]:
    """The recipes, after `onnxbuild run` of each."""
    folder = work / "recipes"
    folder.mkdir(parents=True, exist_ok=True)
    (work / "pyproject.toml").touch()
    config = json.loads((weights / "config.json").read_text())
    recipes = {}
    for name in kinds:
        written = KINDS[name]
        file = folder / f"{name}.yaml"
        file.write_text(
            RECIPE.format(
                name=name, past=past, weights=weights, layers=config["num_hidden_layers"],
                heads=config["num_key_value_heads"], size=config["head_dim"],
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


def opened(model: Path, threads: int) -> onnxruntime.InferenceSession:
    """A session on so many threads."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def decoding(
    model: Path, inputs: Sequence[DummyInput], past: int, threads: int
) -> Callable[[], object]:
    """One new token after a past, whose tensors are in ONNX Runtime's memory."""
    feeds = feeds_of(inputs, 1, past)
    run = StatefulRun(opened(model, threads), inputs, past + 1)
    run(feeds)
    state = {each.name: each for each in state_inputs(inputs)}
    held = {
        name: onnxruntime.OrtValue.ortvalue_from_numpy(array)
        for name, array in feeds.items()
        if name in state and not state[name].in_place
    }
    others = {name: array for name, array in feeds.items() if name not in state}
    return lambda: run(others | held)


def recomputing(
    model: Path, inputs: Sequence[DummyInput], past: int, threads: int
) -> Callable[[], object]:
    """One new token, all before it computed again."""
    feeds = feeds_of(inputs, past + 1, 0)
    session = opened(model, threads)
    return lambda: session.run(["logits"], feeds)


def feeds_of(inputs: Sequence[DummyInput], new: int, past: int) -> Feeds:
    """Feeds of one text."""
    sizes = {"batch": 1, "sequence": new, "past": past}
    feeds = make_feeds(inputs, sizes, seed=0)
    return {name: np.ascontiguousarray(array) for name, array in feeds.items()}


if __name__ == "__main__":
    main()
