"""The modules that sentence-transformers runs after a folder's transformer, in words and as `processing`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onnxbuild.regular_files import read_user_file

_MODULES = "modules.json"
_POOLING = " pooling"
_OPERATIONS = {
    "mean pooling": "pool: {mask: attention_mask}",
    "cls pooling": "pool: {mode: cls}",
    "normalize": "l2_normalize: {}",
}
"""Module, pooling with its mode -> the operation of `processing.postprocess`."""
_OLD_KEYS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""Keys that say the mode in configs of older versions of sentence-transformers -> the mode."""


def embedding_comment(folder: Path) -> str:
    """Return how an embedding is made of `last_hidden_state`; empty if the folder has no such modules.

    Args:
        folder: The one that holds config.json.
    """
    later = _later(folder)
    if not later:
        return ""
    steps = ", then ".join(later)
    said = f"of the transformer; sentence-transformers computes embeddings from it: {steps}"
    unknown = [each for each in later if each not in _OPERATIONS]
    if unknown:
        return f"{said}. `processing` has no {unknown[0]}: for embeddings, name a callable whose module does it"
    operations = ", ".join(_OPERATIONS[each] for each in later)
    return f"{said}. For embeddings, add `processing: {{postprocess: [{operations}]}}`"


def _later(folder: Path) -> Sequence[str]:
    """Modules after the transformer, pooling with its mode; empty without pooling."""
    listed = _json(folder / _MODULES)
    found = []
    for each in listed if isinstance(listed, list) else ():
        kind = str(each.get("type", "")).rpartition(".")[2] if isinstance(each, Mapping) else ""
        if kind == "Pooling":
            found.append(_pooling(_json(folder / str(each.get("path")) / "config.json")))
        elif kind and kind != "Transformer":
            found.append(kind.lower())
    return found if any(each.endswith(_POOLING) for each in found) else ()


def _pooling(config: object) -> str:
    """The kind of pooling, as new and old configs say it."""
    known: Mapping[str, Any] = config if isinstance(config, Mapping) else {}
    mode = known.get("pooling_mode")
    if not isinstance(mode, str):
        modes = [name for key, name in _OLD_KEYS.items() if known.get(key) is True]
        mode = modes[0] if len(modes) == 1 else "several kinds of"
    return f"{mode}{_POOLING}"


def _json(file: Path) -> object:
    """The content; None if it is not there, or no JSON."""
    try:
        return json.loads(read_user_file(file))
    except (OSError, ValueError, RecursionError):
        return None
