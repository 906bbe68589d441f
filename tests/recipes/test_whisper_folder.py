"""recipes/models/whisper_folder.py: weights in CTranslate2's form are read back as the model that they were written from."""

import json
import struct
from functools import partial

import numpy as np
import pytest

from tests.recipes.test_models import entrypoints
from tests.steps.encoder_decoders import whisper

WORDS = {"<|startoftranscript|>": 3, "<|endoftext|>": 2, "<|notimestamps|>": 5}
ATTENTION = ("self_attn", "self_attention"), ("encoder_attn", "attention")
NORM = {"weight": "gamma", "bias": "beta"}


def arrays_of(model):
    """Name -> array, as CTranslate2 has them: projections of one attention joined, a bias for keys, too."""
    weights = {name: each.numpy() for name, each in model.state_dict().items()}
    found = {}

    def joined(to, name, *parts):
        for kind in ("weight", "bias"):
            each = [weights.get(f"{name}.{p}.{kind}") for p in parts]
            zeros = np.zeros(model.config.d_model, np.float32)
            found[f"{to}/{kind}"] = np.concatenate([zeros if e is None else e for e in each])

    def norm(to, name):
        found.update({f"{to}/{NORM[kind]}": weights[f"{name}.{kind}"] for kind in NORM})

    for half, layers in (("encoder", 1), ("decoder", 2)):
        norm(f"{half}/layer_norm", f"model.{half}.layer_norm")
        table = f"{half}/position_encodings/encodings"
        found[table] = weights[f"model.{half}.embed_positions.weight"]
        found[f"{half}/num_heads"] = np.array(4, np.int16)
        for n in range(layers):
            own, at = f"{half}/layer_{n}", f"model.{half}.layers.{n}"
            for name, theirs in ATTENTION[: 1 if half == "encoder" else 2]:
                norm(f"{own}/{theirs}/layer_norm", f"{at}.{name}_layer_norm")
                first = ("q_proj", "k_proj", "v_proj")
                groups = [first] if name == "self_attn" else [first[:1], first[1:]]
                for number, group in enumerate([*groups, ("out_proj",)]):
                    joined(f"{own}/{theirs}/linear_{number}", f"{at}.{name}", *group)
            norm(f"{own}/ffn/layer_norm", f"{at}.final_layer_norm")
            for number in (0, 1):
                joined(f"{own}/ffn/linear_{number}", at, f"fc{number + 1}")
    for name in ("conv1", "conv2"):
        joined(f"encoder/{name}", "model.encoder", name)
    found["decoder/embeddings/weight"] = weights["model.decoder.embed_tokens.weight"]
    return found


def binary(arrays, version=6):
    """The bytes of model.bin."""
    text = lambda name: struct.pack("<H", len(name) + 1) + name.encode() + b"\0"  # noqa: E731
    kinds = {np.dtype("float32"): 0, np.dtype("int16"): 2}
    content = [struct.pack("<I", version), text("WhisperSpec"), struct.pack("<II", 3, len(arrays))]
    for name, each in arrays.items():
        content += [text(name), struct.pack(f"<B{each.ndim}I", each.ndim, *each.shape)]
        content += [struct.pack("<BI", kinds[each.dtype], each.nbytes), each.tobytes()]
    return b"".join(content)


@pytest.fixture
def written(tmp_path):
    """(the model, a folder with its weights in CTranslate2's form)."""
    import torch

    model = whisper().eval()
    with torch.no_grad():
        model.proj_out.weight.copy_(model.model.decoder.embed_tokens.weight)  # tied in Whisper
    (tmp_path / "model.bin").write_bytes(binary(arrays_of(model)))
    said = {"suppress_ids": [7], "suppress_ids_begin": [8]}
    (tmp_path / "config.json").write_text(json.dumps(said))
    tokens = [{"content": content, "id": number} for content, number in WORDS.items()]
    (tmp_path / "tokenizer.json").write_text(json.dumps({"added_tokens": tokens}))
    return model, tmp_path


def test_the_model_gives_what_the_one_gave_whose_weights_were_written(written, tmp_path):
    import torch
    from transformers import WhisperForConditionalGeneration

    model, source = written
    entrypoints("whisper_folder").main(source, tmp_path / "folder")
    found = WhisperForConditionalGeneration.from_pretrained(tmp_path / "folder").eval()
    torch.manual_seed(0)
    call = {"input_features": torch.randn(2, 8, 60), "decoder_input_ids": torch.tensor([[3, 9], [3, 4]])}  # fmt: skip
    with torch.no_grad():
        assert torch.allclose(found(**call).logits, model(**call).logits, atol=1e-5)
    said = found.generation_config
    assert (said.suppress_tokens, said.begin_suppress_tokens) == ([7], [8])
    assert (said.decoder_start_token_id, said.eos_token_id, said.no_timestamps_token_id) == (
        3,
        2,
        5,
    )
    assert (tmp_path / "folder/tokenizer.json").is_file()


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (partial(binary, version=5), "is of version 5; expected 6"),
        (lambda arrays: binary({n: a for n, a in arrays.items() if "conv2" not in n}), "not a Whisper's weights"),
    ],
)  # fmt: skip
def test_other_weights_are_refused(written, tmp_path, write, said):
    model, source = written
    (source / "model.bin").write_bytes(write(arrays_of(model)))
    with pytest.raises(SystemExit, match=said):
        entrypoints("whisper_folder").main(source, tmp_path / "folder")
