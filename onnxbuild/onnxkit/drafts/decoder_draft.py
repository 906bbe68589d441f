"""Draft of a recipe for a model that writes text: its state is the cache that one call makes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.draft import Draft
from onnxbuild.core.errors import StepError
from onnxbuild.core.state import STATE
from onnxbuild.onnxkit.huggingface.decoders import PARAMETER, PAST, POSITIONS
from onnxbuild.onnxkit.huggingface.folder import CONFIG
from onnxbuild.onnxkit.huggingface.load import load_model
from onnxbuild.onnxkit.modules.transformers_cache import takes_cache, tensors_of
from onnxbuild.onnxkit.sources.parts import BATCH

if TYPE_CHECKING:
    import torch

_ROWS, _TOKENS = 2, 3
TEXTS = (
    "The capital of France is",
    "Water boils at",
    "Once upon a time there was",
    "def add(a, b):",
    "1, 2, 3, 4,",
    "Dear Sir or Madam,",
    "The opposite of cold is",
    "To bake bread, you need",
)
"""Prompts of a first recipe."""

_MOST_DIVERGENCE = 0.1
"""Nats. Without a bound on its prompts, `validate` judges 8 and 4 bits on caches of noise, which fail good variants."""


def draft_of_decoder(file: Path, arguments: Mapping[str, Any], tokenizer: Sequence[str]) -> Draft:
    """Run a model once and return `state`, the inputs that it takes, and prompts.

    Args:
        file: The folder's config.json, or a GGUF file.
        arguments: As `load_model` takes them.
        tokenizer: Files of its tokenizer, as the recipe names them; there may be none.

    Raises:
        StepError: The model can't be loaded, or makes no Cache, or one that can't be declared.
    """
    where = file.parent.name if file.name == CONFIG else file.name
    model = load_model(file, file.name, arguments, where)
    parameters = inspect.signature(model.forward).parameters
    found = (name for name, each in parameters.items() if takes_cache(each.annotation))
    parameter = next(found, PARAMETER)
    state = _state(_cache_of(model, parameter, where), parameter)
    recipe: dict[str, Any] = {STATE: state}
    comments = {STATE: "its cache, as one call made it"}
    updates = {each["update"] for each in state.values()}
    inputs = ["input_ids"] if updates == {"replaced"} else ["input_ids", "attention_mask"]
    if updates == {"replaced"} or not _uses_positions(model):
        recipe["model"] = {"inputs": inputs}
    else:
        inputs.append(POSITIONS)
    if updates == {"grows"}:
        recipe["export"] = {"exporter": "torchscript"}
        comments["export"] = "half of dynamo's time for many layers; `auto` tries both"
    if "replaced" in updates:  # such a state goes on one token at a time
        shapes = {name: {"shape": [BATCH, 1]} for name in inputs}
        recipe["dummy_inputs"] = shapes | (
            {"attention_mask": {"shape": [BATCH, f"{PAST} + 1"]}} if "grows" in updates else {}
        )
    if tokenizer:
        recipe["generate"] = {"texts": list(TEXTS), "tokenizer": list(tokenizer)}
        comments["generate"] = "every variant continues these; write your own"
    else:
        recipe["generate"] = {"prompts": "dummy"}
        comments["generate"] = "random ids; there is no tokenizer.json for texts"
    recipe["generate"]["max_kl"] = _MOST_DIVERGENCE
    comments["generate"] += "; `max_kl` bounds variants of 8 and 4 bits"
    for entry in state.values():
        if entry["update"] == "grows":
            del entry["update"]  # the default
    return Draft(recipe, comments)


def _uses_positions(model: torch.nn.Module) -> bool:
    """Return whether other positions give other logits; some models take them, and leave them aside."""
    import torch

    if POSITIONS not in inspect.signature(model.forward).parameters:
        return False
    ids = torch.arange(_TOKENS)[None]
    mask = torch.ones_like(ids)  # without one, positions may tell texts of one row apart
    with torch.no_grad():
        one, other = (
            model(input_ids=ids, attention_mask=mask, position_ids=each, use_cache=False).logits
            for each in (ids, 2 * ids)
        )
    return not torch.equal(one, other)


def _cache_of(
    model: torch.nn.Module, parameter: str, where: str
) -> dict[tuple[int, str], torch.Tensor]:
    import torch
    from transformers import Cache

    ids = torch.ones((_ROWS, _TOKENS), dtype=torch.int64)
    with torch.no_grad():
        value = model(input_ids=ids, use_cache=True)
    cache = next((each for each in value.values() if isinstance(each, Cache)), None)
    if cache is None:
        raise StepError(
            f"{type(model).__name__}.forward takes '{parameter}' and returns no Cache",
            where=where,
            fix="load the model by a callable that returns one which does: `model: {entrypoint: FILE.py:CALLABLE}`",
        )
    return tensors_of(cache)


def _state(
    found: Mapping[tuple[int, str], torch.Tensor], parameter: str
) -> dict[str, dict[str, Any]]:
    """`state`: an entry for the tensors of each shape."""
    groups: dict[tuple[tuple[int | str, ...], str], list[tuple[int, str]]] = {}
    for place, tensor in found.items():
        grows = place[1] in ("key", "value")
        shape: Sequence[int | str] = tuple(tensor.shape)
        if grows:
            shape = (BATCH, shape[1], PAST, *shape[3:])
        dtype = str(tensor.dtype).removeprefix("torch.")
        groups.setdefault(((BATCH, *shape[1:]), dtype), []).append(place)
    entries: dict[str, dict[str, Any]] = {}
    for (shape, dtype), places in groups.items():
        layers = list(dict.fromkeys(layer for layer, _ in places))
        parts = list(dict.fromkeys(part for _, part in places))
        is_all = layers == list(range(len(layers)))
        name = parameter if len(groups) == 1 else f"{parts[0]}_{layers[0]}"
        entries[name] = {
            **({} if name == parameter else {"parameter": parameter}),
            "each": {"layer": len(layers) if is_all else layers, "part": parts},
            "shape": list(shape),
            **({} if dtype == "float32" else {"dtype": dtype}),
            "update": "grows" if PAST in shape else "replaced",
        }
    return entries
