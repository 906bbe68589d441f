"""Inputs that a layer of PyTorch's takes, as guesses of what a whole module takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.modules.program_modules import scripted_in

if TYPE_CHECKING:
    import torch


SEQUENCE = "sequence"

BATCH = "batch"

PAST = "past"
"""Length of a cache."""

_SIDES = (224, 256, 128, 64, 32, 28, 16, 8)
"""Sides of pictures that networks are made for, the most frequent first."""

_LENGTHS = (16, 128, 1024, 16000)

_VOLUMES = (32, 64, 16)

_WIDTHS = ("hidden_size", "d_model", "n_embd", "embed_dim", "dim")

_HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads")

_OPERATORS = {
    "aten::linear": ("Linear", 1),
    "aten::conv1d": ("Conv1d", 1),
    "aten::conv2d": ("Conv2d", 1),
    "aten::conv3d": ("Conv3d", 1),
    "aten::embedding": ("Embedding", 0),
}
"""Operator of a frozen graph -> the class of its layer, and which of its arguments is the weight."""

_GROUPS = "groups"

_GROUPS_PLACE = 6
"""Position of `groups` among the arguments of aten::conv1d, conv2d and conv3d."""


@dataclass(frozen=True, slots=True)
class Guess:
    """An input as a recipe declares it.

    Attributes:
        dtype: Type of the elements.
        shape: Ints and symbols, outermost first.
        because: Source of the guess, for a comment.
        high: One past the greatest index, for rows of a table; 0 for no such bound.
        sure: Everything but the axes' sizes is known, so that nothing has to be looked up.
    """

    dtype: str
    shape: tuple[int | str, ...]
    because: str
    high: int = 0
    sure: bool = True

    def declared(self) -> dict[str, Any]:
        """Return it as a recipe's JSON."""
        bounds = {"low": 0, "high": self.high} if self.high else {}
        return {"dtype": self.dtype, "shape": list(self.shape), **bounds}


def named_guesses(module: torch.nn.Module, name: str) -> Iterator[Guess]:
    """Yield what an input is by a name that many models have: token ids, a cache, a step of diffusion, another's states."""
    if re.fullmatch(r"(.*_)?ids", name):
        length = f"decoder_{SEQUENCE}" if name.startswith("decoder_") else SEQUENCE
        for each in layer_guesses(module):
            if each.high and len(each.shape) > 1:
                yield replace(each, shape=(BATCH, length))
    elif re.fullmatch(r"timesteps?|sigmas?", name):
        yield Guess("int64", (BATCH,), "its name", 1000)
        yield Guess(_dtype_of(module), (BATCH,), "its name")
        yield Guess("int64", (), "its name", 1000)
    elif name in ("encoder_hidden_states", "encoder_outputs"):
        for width in _said_by_config(
            module, "cross_attention_dim", "encoder_hidden_size", *_WIDTHS
        ):
            yield Guess(_dtype_of(module), (BATCH, f"encoder_{SEQUENCE}", width), "its name")
    elif re.fullmatch(r"past_.+", name):
        heads = _said_by_config(module, "num_key_value_heads", *_HEADS)
        widths = _said_by_config(module, "head_dim") + [
            width // count
            for width in _said_by_config(module, *_WIDTHS)
            for count in _said_by_config(module, *_HEADS)
        ]
        for count in heads:
            for width in widths:
                yield Guess(_dtype_of(module), (BATCH, count, PAST, width), "its name")


def _said_by_config(module: torch.nn.Module, *names: str) -> list[int]:
    """Sizes that the module's `config`, the module, or its layers have under these names, each once."""
    holders = (getattr(module, "config", None), *module.modules())
    found = [
        getattr(holder, name, None) if not isinstance(holder, dict) else holder.get(name)
        for name in names
        for holder in holders
    ]
    return list(dict.fromkeys(each for each in found if type(each) is int and each > 0))


def layer_guesses(module: torch.nn.Module) -> Iterator[Guess]:
    """Yield what the module's layers take, in the order in which they are defined."""
    program = scripted_in(module)
    layers = module.named_modules() if program is None else script_layers(program)
    for name, layer in layers:
        shown = f"{name or 'the module'} ({type(layer).__name__})"
        yield from _of_layer(layer, shown)


def _of_layer(layer: torch.nn.Module, shown: str) -> Iterator[Guess]:
    from torch import nn

    dtype = _dtype_of(layer)
    match layer:
        case nn.Linear() | nn.Bilinear():
            size = layer.in_features if isinstance(layer, nn.Linear) else layer.in1_features
            said = f"{shown} takes {size} features"
            yield Guess(dtype, (BATCH, size), said)
            yield Guess(dtype, (BATCH, SEQUENCE, size), said)
        case nn.Embedding() | nn.EmbeddingBag():
            rows = layer.num_embeddings
            said = f"{shown} has {rows} rows"
            yield Guess("int64", (BATCH, SEQUENCE), said, rows)
            yield Guess("int64", (BATCH,), said, rows)
        case nn.Conv1d() | nn.Conv2d() | nn.Conv3d():
            sizes = {1: _LENGTHS, 2: _SIDES, 3: _VOLUMES}[len(layer.kernel_size)]
            said = f"{shown} takes {layer.in_channels} channels"
            for size in sizes:
                sides = (size,) * len(layer.kernel_size)
                yield Guess(dtype, (BATCH, layer.in_channels, *sides), said, sure=False)
        case nn.LSTM() | nn.GRU() | nn.RNN():
            axes = (BATCH, SEQUENCE) if layer.batch_first else (SEQUENCE, BATCH)
            yield Guess(
                dtype, (*axes, layer.input_size), f"{shown} takes {layer.input_size} features"
            )
        case nn.MultiheadAttention():
            axes = (BATCH, SEQUENCE) if layer.batch_first else (SEQUENCE, BATCH)
            yield Guess(
                dtype, (*axes, layer.embed_dim), f"{shown} takes {layer.embed_dim} features"
            )
        case nn.LayerNorm():
            sizes = tuple(layer.normalized_shape)
            yield Guess(dtype, (BATCH, *sizes), f"{shown} takes {sizes}")
            yield Guess(dtype, (BATCH, SEQUENCE, *sizes), f"{shown} takes {sizes}")
        case nn.BatchNorm1d():
            size = layer.num_features
            yield Guess(dtype, (BATCH, size), f"{shown} takes {size} features")


def _dtype_of(layer: torch.nn.Module) -> str:
    import torch

    dtype = next((each.dtype for each in layer.parameters() if each.is_floating_point()), None)
    names = {torch.float64: "float64", torch.float16: "float16", torch.bfloat16: "bfloat16"}
    return "float32" if dtype is None else names.get(dtype, "float32")


def given_guesses(module: torch.nn.Module) -> dict[str, Guess]:
    """Return what the module gives as examples of its inputs, by name: `dummy_inputs` of transformers."""
    import torch

    try:
        given = getattr(module, "dummy_inputs", None)
    except Exception:  # noqa: BLE001 - a property of somebody's that can fail in any way
        given = None
    if not isinstance(given, dict):
        return {}
    found = {}
    rows = _rows_of(module)
    for name, tensor in given.items():
        if isinstance(tensor, torch.Tensor) and tensor.dim():
            dtype = str(tensor.dtype).removeprefix("torch.")
            if dtype in ("int64", "int32"):
                shape = (BATCH, SEQUENCE, *tensor.shape[2:]) if tensor.dim() > 1 else (BATCH,)
                found[str(name)] = Guess(dtype, shape, "its `dummy_inputs`", rows)
            else:
                found[str(name)] = Guess(dtype, (BATCH, *tensor.shape[1:]), "its `dummy_inputs`")
    return found


def _rows_of(module: torch.nn.Module) -> int:
    from torch import nn

    tables = (each for each in module.modules() if isinstance(each, nn.Embedding))
    return next((each.num_embeddings for each in tables), 0)


def script_layers(program: Any) -> Iterator[tuple[str, torch.nn.Module]]:
    """Yield (name, layer), in the order in which they are defined; then those of a frozen program's graph.

    Their tensors have no storage. Layers that nothing is known of are left out.
    """
    for name, part in program.named_modules():
        tensors = dict(part.named_parameters(recurse=False))
        weight = tensors.get("weight", tensors.get("weight_ih_l0"))
        if weight is not None:
            layer = _layer(
                str(part.original_name),
                weight,
                groups=int(getattr(part, _GROUPS, 1)),
                batch_first=bool(getattr(part, "batch_first", False)),
            )
            if layer is not None:
                yield name, layer
    yield from _of_graph(program)


def _of_graph(program: Any) -> Iterator[tuple[str, torch.nn.Module]]:
    import torch

    for number, node in enumerate(program.inlined_graph.nodes()):
        name, place = _OPERATORS.get(node.kind(), ("", 0))
        values = [each.toIValue() for each in node.inputs()] if name else []
        if name and isinstance(values[place], torch.Tensor):
            groups = values[_GROUPS_PLACE] if name.startswith("Conv") else 1
            layer = _layer(name, values[place], groups=groups or 1, batch_first=False)
            if layer is not None:
                yield f"operator {number}", layer


def _layer(
    name: str, weight: torch.Tensor, *, groups: int, batch_first: bool
) -> torch.nn.Module | None:
    from torch import nn

    size, where = tuple(weight.shape), {"device": "meta", "dtype": weight.dtype}
    match name, size:
        case "LSTM" | "GRU" | "RNN", (_, taken):
            return getattr(nn, name)(taken, 1, batch_first=batch_first, **where)
        case "Linear", (out, taken):
            return nn.Linear(taken, out, **where)
        case "Embedding" | "EmbeddingBag", (rows, wide):
            return getattr(nn, name)(rows, wide, **where)
        case "Conv1d" | "Conv2d" | "Conv3d", (out, taken, *kernel):
            return getattr(nn, name)(taken * groups, out * groups, kernel, groups=groups, **where)
        case "LayerNorm", _:
            return nn.LayerNorm(size, **where)
        case "BatchNorm1d", (features,):
            return nn.BatchNorm1d(features, **where)
    return None
