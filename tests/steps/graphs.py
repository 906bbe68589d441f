"""Real small models as ONNX, exported once a test process: a two-layer BERT and the digits CNN."""

import functools
import io
import json
import warnings
from pathlib import Path

import onnx

from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.model_files import save_model

RECIPES = Path(__file__).parents[2] / "recipes"
DIGITS = RECIPES / "models" / "digits.py"
HEADS, HIDDEN, WORDS = 2, 32, 50


@functools.cache
def _tiny_bert():
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=WORDS, hidden_size=HIDDEN, num_hidden_layers=2, num_attention_heads=HEADS,
        intermediate_size=64, max_position_embeddings=32, attn_implementation="eager",
    )  # fmt: skip

    class Hidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = BertModel(config, add_pooling_layer=False)

        def forward(self, input_ids, attention_mask):
            return self.bert(input_ids, attention_mask=attention_mask).last_hidden_state

    ids = torch.ones((2, 8), dtype=torch.long)
    names = ["input_ids", "attention_mask"]
    axes = {0: "batch", 1: "sequence"}
    return _export(
        Hidden(), (ids, ids), names, ["hidden"], dict.fromkeys([*names, "hidden"], axes)
    )


@functools.cache
def _tiny_mpnet():
    """By dynamo: its graph is the one in which the embeddings are fused with their positions."""
    import torch
    from transformers import MPNetConfig, MPNetModel

    torch.manual_seed(0)
    config = MPNetConfig(
        vocab_size=WORDS, hidden_size=HIDDEN, num_hidden_layers=1, num_attention_heads=HEADS,
        intermediate_size=64, max_position_embeddings=40, attn_implementation="eager",
    )  # fmt: skip

    class Hidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.mpnet = MPNetModel(config, add_pooling_layer=False)

        def forward(self, input_ids, attention_mask):
            return self.mpnet(input_ids, attention_mask=attention_mask).last_hidden_state

    ids = torch.full((2, 8), 5)
    axes = {
        0: torch.export.Dim("batch", min=1, max=8),
        1: torch.export.Dim("sequence", min=1, max=32),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            Hidden().eval(), (ids, torch.ones_like(ids)), dynamo=True, opset_version=18,
            input_names=["input_ids", "attention_mask"], output_names=["hidden"],
            dynamic_shapes=(axes, axes), verbose=False,
        )  # fmt: skip
    return program.model_proto.SerializeToString()


@functools.cache
def _digits():
    import torch

    module = digits_module().load()
    axes = {"image": {0: "batch"}, "logits": {0: "batch"}}
    return _export(module, (torch.zeros(2, 1, 8, 8),), ["image"], ["logits"], axes)


@functools.cache
def digits_module():
    """recipes/models/digits.py, imported."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("digits", DIGITS)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _export(module, args, inputs, outputs, axes):
    import torch

    target = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own deprecations and tracer warnings
        torch.onnx.export(
            module.eval(), args, target, dynamo=False, opset_version=18, input_names=inputs,
            output_names=outputs, dynamic_axes=axes,
        )  # fmt: skip
    return target.getvalue()


def save(made, folder, *, external="auto"):
    """A model, or the bytes of one, as an artifact's folder."""
    model = onnx.load_model_from_string(made) if isinstance(made, bytes) else made
    canonicalize(model)
    save_model(model, folder, external=external)
    return folder


def tiny_bert(folder, **options):
    return save(_tiny_bert(), folder, **options)


def tiny_mpnet(folder, **options):
    return save(_tiny_mpnet(), folder, **options)


def digits(folder, **options):
    return save(_digits(), folder, **options)


def config(folder, **reported):
    """export's second output: what it saw of the model's own config."""
    folder.mkdir(parents=True, exist_ok=True)
    known = {"model_type": None, "num_heads": None, "hidden_size": None, **reported}
    (folder / "report.json").write_text(json.dumps(known))
    return folder


def run_model(folder, feeds):
    """Output name -> array, by ONNX Runtime without optimization."""
    from onnxbuild.onnxkit.sessions.open import open_session
    from onnxbuild.onnxkit.sessions.run import run_session

    return run_session(open_session(folder, optimize=False), feeds)


def open_exact(path):
    """A session whose INT8 products don't saturate, whatever this CPU is (an optimizer's doing)."""
    from onnxbuild.onnxkit.sessions.open import open_session
    from onnxbuild.onnxkit.sessions.settings import SessionSettings

    config = {"session.x64quantprecision": 1}
    return open_session(path, settings=SessionSettings(intra_op_threads=1, config=config))


def sentences(batch=3, sequence=7):
    """Feeds for the BERT, the last sentence padded."""
    import numpy as np

    ids = np.random.default_rng(0).integers(1, WORDS, (batch, sequence))
    mask = np.ones((batch, sequence), np.int64)
    mask[-1, sequence // 2 :] = 0
    return {"input_ids": ids, "attention_mask": mask}


def operators(folder):
    """Operator type -> count."""
    from collections import Counter

    model = onnx.load(folder / "model.onnx", load_external_data=False)
    return Counter(node.op_type for node in model.graph.node)


def interface(folder):
    """Inputs and outputs with their symbols."""
    from onnxbuild.onnxkit.model.inspect import summarize

    found = summarize(onnx.load(folder / "model.onnx", load_external_data=False))
    return found["inputs"], found["outputs"]
