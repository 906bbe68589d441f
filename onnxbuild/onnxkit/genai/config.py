"""genai_config.json: the names, sizes and special tokens of a decoder, as onnxruntime-genai takes them."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.core.axis import is_sum
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.bundles.manifest import Decoder, Manifest
from onnxbuild.onnxkit.data.greedy import Roles, RolesError, roles_of
from onnxbuild.onnxkit.data.states import state_inputs
from onnxbuild.onnxkit.loaders.text_run import special_ids

CONFIG_FILE = "genai_config.json"
_NUMBER = re.compile(r"\d+")


class NotForGenaiError(ValueError):
    """onnxruntime-genai can't run the model; the text is a sentence's end: `its state ...`."""


@dataclass(frozen=True, slots=True)
class GenaiCache:
    """Keys and values by layer.

    Attributes:
        layers: Number of layers.
        heads: Heads of keys.
        size: Of a head.
        inputs: Patterns of the inputs' names, `past_key_values.%d.key`, of keys and of values.
        outputs: Patterns of the outputs' names.
        takes_padding: Prompts of different lengths, padded on their right, give the tokens of each alone.
    """

    layers: int
    heads: int
    size: int
    inputs: tuple[str, str]
    outputs: tuple[str, str]
    takes_padding: bool


def cache_of(inputs: Sequence[DummyInput]) -> GenaiCache:
    """Return the cache of a decoder as genai names it.

    Args:
        inputs: All inputs of the model.

    Raises:
        NotForGenaiError: The model is no decoder, or one whose inputs genai can't feed.
    """
    try:
        roles = roles_of(inputs)
    except RolesError as error:
        raise NotForGenaiError(str(error)) from error
    if roles.growth is None:
        raise NotForGenaiError("its state is replaced; genai feeds keys and values that grow")
    _check_fed(roles)
    shapes = {each.shape for each in state_inputs(inputs)}
    shape = shapes.pop()
    is_known = len(shape) == 4 and shape[2] == roles.growth.axis  # noqa: PLR2004 - batch, heads, past, size
    if shapes or not is_known or type(shape[1]) is not int or type(shape[3]) is not int:
        raise NotForGenaiError(
            f"its state has the shape {list(shape)}{' and others' if shapes else ''}; genai feeds one shape, "
            f"[batch, HEADS, {roles.growth.axis}, SIZE], for all layers"
        )
    (keys, key_outputs), (values, value_outputs) = _patterns(inputs)
    layers = len(state_inputs(inputs)) // 2
    takes_padding = roles.takes_padding and bool(roles.positions)
    outputs = (key_outputs, value_outputs)
    return GenaiCache(layers, shape[1], shape[3], (keys, values), outputs, takes_padding)


def _check_fed(roles: Roles) -> None:
    """Refuse masks and positions that genai has no values for."""
    for each in roles.masks:
        if not is_sum(each.shape[-1]) or len(roles.masks) > 1:
            raise NotForGenaiError(
                f"genai feeds one mask, over the past and the new tokens, and '{each.name}' is another"
            )
    for each in roles.positions:
        if len(each.shape) == 1 or len(roles.positions) > 1:
            raise NotForGenaiError(
                f"genai feeds one input of positions, of shape [batch, sequence], and '{each.name}' is another"
            )
    if len(types := {each.dtype for each in (*roles.masks, *roles.positions)}) > 1:
        raise NotForGenaiError(
            f"its mask and positions are {' and '.join(sorted(types))}; genai feeds one type"
        )


def _patterns(inputs: Sequence[DummyInput]) -> tuple[tuple[str, str], tuple[str, str]]:
    """Patterns of the names of keys and values, each of an input and its output, with `%d` for the layer."""
    state = state_inputs(inputs)
    found: dict[tuple[str, str], list[int]] = {}
    for each in state:
        for layer, pattern in _numbered(each.name):
            for other, output in _numbered(each.fed_by):
                if layer == other:
                    found.setdefault((pattern, output), []).append(layer)
    layers = list(range(len(state) // 2))
    whole = [pair for pair, numbers in found.items() if numbers == layers]
    if len(state) % 2 or len(whole) != 2:  # noqa: PLR2004 - keys and values
        raise NotForGenaiError(
            f"genai numbers layers from 0 in the names of keys and values, and there are {state[0].name}, ..., "
            f"{state[-1].name}"
        )
    return whole[0], whole[1]


def _numbered(name: str) -> list[tuple[int, str]]:
    """Each number in a name, and the name with `%d` in its place."""
    return [
        (int(each[0]), f"{name[: each.start()]}%d{name[each.end() :]}")
        for each in _NUMBER.finditer(name)
        if str(int(each[0])) == each[0]
    ]


def genai_config(
    manifest: Manifest, cache: GenaiCache, tokenizer: Path, padding: int | None
) -> dict[str, Any]:
    """Return the content of genai_config.json.

    Args:
        manifest: The bundle's, of a decoder.
        tokenizer: Folder of its tokenizer's files, which may lack.
        padding: Id that pads prompts; None for the tokenizer's.

    Raises:
        NotForGenaiError: The number of tokens is unknown, or `padding` is none of them.
    """
    known: Decoder | None = manifest.decoder
    assert known is not None
    assert known.past is not None  # the state grows
    logits = next(each for each in manifest.outputs if each.name == known.logits)
    vocabulary = (logits.shape or ("",))[-1]
    if type(vocabulary) is not int:
        raise NotForGenaiError(
            f"the last axis of '{known.logits}' is {vocabulary!r}; genai takes a fixed number of tokens"
        )
    vocabulary_ids = _ids_by_token(tokenizer)
    ends = special_ids(tokenizer, "eos", vocabulary_ids.get)
    first = special_ids(tokenizer, "bos", vocabulary_ids.get)
    if padding is None:
        padding = (*special_ids(tokenizer, "pad", vocabulary_ids.get), *ends, 0)[0]
    if padding >= vocabulary:
        raise NotForGenaiError(f"pad_token_id is {padding}; the model has {vocabulary} tokens")
    longest = manifest.dynamic_axes[known.past]["max"] + 1
    inputs = dict(zip(["attention_mask"], known.masks, strict=False))
    inputs |= dict(zip(["position_ids"], known.positions, strict=False))
    return {
        "model": {
            "type": "decoder",
            "vocab_size": vocabulary,
            "context_length": longest,
            **({"bos_token_id": first[0]} if first else {}),
            "eos_token_id": ends
            or [padding],  # genai ends at its padding if nothing else is named
            "pad_token_id": padding,
            "decoder": {
                "filename": manifest.file,
                "num_hidden_layers": cache.layers,
                "num_key_value_heads": cache.heads,
                "head_size": cache.size,
                "inputs": {
                    "input_ids": known.ids,
                    **inputs,
                    "past_key_names": cache.inputs[0],
                    "past_value_names": cache.inputs[1],
                },
                "outputs": {
                    "logits": known.logits,
                    "present_key_names": cache.outputs[0],
                    "present_value_names": cache.outputs[1],
                },
                "session_options": _session_options(manifest),
            },
        },
        "search": {"do_sample": False, "max_length": longest, "past_present_share_buffer": False},
    }


def _session_options(manifest: Manifest) -> dict[str, Any]:
    """The variant's settings, as far as genai takes them; 0 threads are ONNX Runtime's own choice."""
    session = manifest.session
    assert session is not None
    threads = {
        "intra_op_num_threads": session.intra_op_threads,
        "inter_op_num_threads": session.inter_op_threads,
    }
    return {
        **{name: count for name, count in threads.items() if count},
        **{key: str(value) for key, value in session.config.items()},
    }


def _ids_by_token(folder: Path) -> dict[str, int]:
    """Token -> id, of tokenizer.json; empty where there is none."""
    file = folder / "tokenizer.json"
    if not file.is_file():
        return {}
    content = json.loads(file.read_text("utf-8"))
    words = content["model"].get("vocab") or {}
    if isinstance(words, list):  # of a unigram model: [token, score]
        words = {token: number for number, (token, _) in enumerate(words)}
    return {**words, **{each["content"]: each["id"] for each in content.get("added_tokens", ())}}
