"""Models with an encoder and a decoder: two components, of which the decoder takes the encoder's keys and values as a constant cache."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.huggingface.decoders import PARAMETER, PAST
from onnxbuild.onnxkit.sources.outline import SourceOutline, SourceValue
from onnxbuild.onnxkit.sources.parts import BATCH

ENCODER, DECODER = "encoder", "decoder"
PARTS = (ENCODER, DECODER)

SOURCE, TARGET = "source", "target"
MASK = "attention_mask"

CROSS = ("cross_key", "cross_value")
"""Parts of the cache that the encoder gives."""

_LAYERS = (
    "num_decoder_layers", "decoder_layers", "decoder_num_hidden_layers", "num_layers", "num_hidden_layers",
)  # fmt: skip
_HEADS = (
    "decoder_num_key_value_heads", "decoder_attention_heads", "num_heads", "num_attention_heads",
)  # fmt: skip
_WIDTH = ("d_model", "hidden_size")
_MOST = ("max_target_positions", "max_position_embeddings", "n_positions")
_START = ("decoder_start_token_id", "bos_token_id")
_TARGET_MAX = 512


def components(
    model: Mapping[str, Any], config: Mapping[str, Any], generation: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the components, and the pipeline over them, as a recipe has them.

    Args:
        model: `model` of the recipe, which names the whole folder.
        config: config.json.
        generation: generation_config.json.
    """
    suppressed: dict[str, list[int]] = {}
    for key in ("suppress_tokens", "begin_suppress_tokens"):
        named = generation.get(key)
        rows = config.get("vocab_size", 0)
        ids = [each for each in named or () if type(each) is int and 0 <= each < rows]
        suppressed |= {key: ids} if ids else {}
    return {
        "components": {part: {"model": {**model, "part": part}} for part in PARTS},
        "pipeline": {
            "run": "greedy",
            "samples": "dummy",
            "start": _start(config, generation),
            **suppressed,
        },
    }


def _start(config: Mapping[str, Any], said: Mapping[str, Any]) -> list[int]:
    """The ids that the decoder begins with: for Whisper, as its `generate` takes them, also the language, the task and that no times are wanted.

    Where a model of many languages would first detect the one of each sound, it is the first id alone.
    """
    first = _first(said, _START, least=0)
    if first is None:
        first = _first(config, _START, least=0) or 0
    if type(said.get("forced_bos_token_id")) is int:
        return [first, said["forced_bos_token_id"]]
    forced: list[Any] = []
    if not said.get("task") and not said.get("language"):
        forced = [token for _, token in said.get("forced_decoder_ids") or ()]
    elif said.get("language"):
        languages, tasks = said.get("lang_to_id") or {}, said.get("task_to_id") or {}
        name = str(said["language"]).lower()
        forced = [languages.get(name, languages.get(f"<|{name}|>"))]
        forced += [tasks.get(said.get("task") or "transcribe")] if tasks else []
    is_detected = not forced and "lang_to_id" in said
    if is_detected or any(type(each) is not int for each in forced):
        return [first]
    timeless = said.get("no_timestamps_token_id")
    if type(timeless) is int and not said.get("return_timestamps") and timeless not in forced:
        forced.append(timeless)
    return [first, *forced]


def encoder_outline(found: SourceOutline, config: Mapping[str, Any]) -> SourceOutline:
    """Return what goes into the encoder, and the keys and values that it gives for each layer of the decoder.

    Args:
        found: What goes into the model, by its modality.

    Raises:
        SourceError: The config does not say how many layers there are.
    """
    inputs = tuple(_of_source(each) for each in found.inputs)
    layers, _, _ = _sizes(config)
    outputs = tuple(SourceValue(f"{part}.{n}") for n in range(layers) for part in CROSS)
    return replace(found, inputs=inputs, outputs=outputs, axes=_axes_of_source(found))


def decoder_outline(
    found: SourceOutline, config: Mapping[str, Any], *, has_state: bool
) -> SourceOutline:
    """Return what goes into the decoder: new tokens, its own cache, and what the encoder gives.

    Args:
        found: What goes into the model, by its modality.
        has_state: The recipe declares the state by itself.

    Raises:
        SourceError: The config does not say what is in the cache.
    """
    layers, heads, size = _sizes(config)
    rows = _first(config, ("vocab_size",)) or 0
    masks = [_of_source(each) for each in found.inputs if each.name == MASK]
    source: int | str = SOURCE if masks else _first(config, ("max_source_positions",)) or SOURCE
    state = {
        PARAMETER: {
            "each": {"layer": layers, "part": ["key", "value"]},
            "shape": [BATCH, heads, PAST, size],
            "by": TARGET,
        },
        "cross": {
            "parameter": PARAMETER,
            "each": {"layer": layers, "part": list(CROSS)},
            "shape": [BATCH, heads, source, size],
            "update": "constant",
            "from": f"{ENCODER}.{{part}}.{{layer}}",
        },
    }
    ids = SourceValue("decoder_input_ids", "int64", (BATCH, TARGET), rows)
    axes = {**_axes_of_source(found), **_axes_of_target(config)}
    return SourceOutline(
        inputs=(ids, *masks),
        outputs=(SourceValue("logits"),),
        axes=axes,
        state={} if has_state else state,
    )


def _of_source(value: SourceValue) -> SourceValue:
    shape = tuple(SOURCE if each == "sequence" else each for each in value.shape or ())
    return replace(value, shape=shape)


def _axes_of_source(found: SourceOutline) -> dict[str, Mapping[str, int]]:
    return {SOURCE if name == "sequence" else name: each for name, each in found.axes.items()}


def _axes_of_target(config: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Sizes of new tokens, of which the first call alone has several, and of those before them."""
    most = min(_first(config, _MOST) or _TARGET_MAX, _TARGET_MAX)
    new, past = min(4, max(1, most // 4)), min(16, max(1, most // 2))
    return {
        TARGET: {"min": 1, "max": max(new, min(16, most - past)), "example": new},
        PAST: {"min": 0, "max": max(past, most - new), "example": past},
    }


def _sizes(config: Mapping[str, Any]) -> tuple[int, int, int]:
    """(layers of the decoder, its heads of keys, size of a head)."""
    layers, heads, width = (_first(config, keys) for keys in (_LAYERS, _HEADS, _WIDTH))
    size = _first(config, ("d_kv", "head_dim")) or (width // heads if width and heads else None)
    if not layers or not heads or not size:
        kind = config.get("model_type", "no model_type")
        raise SourceError(
            f"config.json ({kind}) does not say what is in the decoder's cache",
            "write `components` with an encoder and a decoder by callables, and the decoder's `state` "
            "(docs/generation.md#encoder-and-decoder)",
        )
    return layers, heads, size


def _first(config: Mapping[str, Any], keys: Sequence[str], least: int = 1) -> int | None:
    found = (config.get(key) for key in keys)
    return next((each for each in found if type(each) is int and each >= least), None)
