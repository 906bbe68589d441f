"""A GGUF file's description, read without its package: layers, heads and sizes of the decoder in it."""

import io
import struct
from pathlib import Path
from typing import Any, BinaryIO

from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.huggingface.folder import ModelFolder
from onnxbuild.regular_files import open_regular

SUFFIX = ".gguf"

_MAGIC, _VERSIONS = b"GGUF", (2, 3)
_NUMBERS = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
_STRING, _ARRAY = 8, 9
"""Types of values; see the section `gguf_metadata_value_type` of GGUF's specification, in ggml's docs/gguf.md."""

_CONFIG = {
    "block_count": "num_hidden_layers",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.key_length_mla": "kv_lora_rank",
    "embedding_length": "hidden_size",
    "context_length": "max_position_embeddings",
    "vocab_size": "vocab_size",
    "ssm.state_size": "state_size",
}
"""Keys of an architecture -> those of transformers' config.json."""


def read_gguf(path: Path) -> ModelFolder:
    """Read the description of the model in a GGUF file, under the keys of config.json.

    Raises:
        SourceError: It is no such file, or a part of one.
        OSError: It can't be read.
    """
    try:
        with io.BufferedReader(open_regular(path)) as file:
            known = _metadata(file)
    except (ValueError, struct.error, MemoryError, OverflowError) as error:
        raise SourceError(
            f"{path.name} is no GGUF file that can be read: {error}", "download it again, whole"
        ) from error
    if known.get("split.count", 0) > 1:
        raise SourceError(
            f"{path.name} is one of {known['split.count']} parts of a model",
            "merge them: `llama-gguf-split --merge FIRST-PART OUTPUT`",
        )
    kind = known.get("general.architecture", "")
    config = {"model_type": kind, "vocab_size": known.get("tokenizer.ggml.tokens", 0)}
    config |= {
        name: known[f"{kind}.{key}"] for key, name in _CONFIG.items() if f"{kind}.{key}" in known
    }
    return ModelFolder(path, config, {}, {}, {}, (path,), (path,), ())


def _metadata(file: BinaryIO) -> dict[str, Any]:
    """Key -> value; of an array its length.

    Raises:
        ValueError: It is no GGUF.
    """
    if file.read(4) != _MAGIC:
        raise ValueError(f"it does not begin with {_MAGIC.decode()}")
    version = _number(file, "I")
    if version not in _VERSIONS:
        raise ValueError(f"its version is {version}; expected {' or '.join(map(str, _VERSIONS))}")
    _number(file, "Q")  # how many tensors
    count = _number(file, "Q")
    return {_text(file): _value(file, _number(file, "I")) for _ in range(count)}


def _number(file: BinaryIO, form: str) -> Any:
    (found,) = struct.unpack(f"<{form}", file.read(struct.calcsize(f"<{form}")))
    return found


def _text(file: BinaryIO) -> str:
    size = _number(file, "Q")
    found = file.read(size) if size < 1 << 24 else b""
    if len(found) != size:
        raise ValueError("it ends within a text")
    return found.decode("utf-8", "replace")


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _text(file)
    if kind != _ARRAY:
        return _number(file, _NUMBERS.get(kind, ""))
    kind, count = _number(file, "I"), _number(file, "Q")
    if kind in _NUMBERS:
        file.seek(count * struct.calcsize(f"<{_NUMBERS[kind]}"), io.SEEK_CUR)
    elif kind == _STRING:
        for _ in range(count):
            file.read(_number(file, "Q"))
    else:
        for _ in range(count):
            _value(file, kind)
    return count
