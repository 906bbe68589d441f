"""A model's folder as `save_pretrained` or the hub's cache leaves it, read without any framework."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.core.errors import did_you_mean
from onnxbuild.core.source_error import SourceError
from onnxbuild.regular_files import read_user_file

CONFIG = "config.json"

DIFFUSERS_CLASS = "_class_name"
"""Key of a config of diffusers', whose models have another form."""

_PROCESSORS = ("preprocessor_config.json", "processor_config.json")

_TOKENIZER = "tokenizer_config.json"

GENERATION_CONFIG = "generation_config.json"

_SAFETENSORS, _PICKLE = "model.safetensors", "pytorch_model.bin"

_OTHER_WEIGHTS = {
    "tf_model.h5": "TensorFlow's weights",
    "flax_model.msgpack": "Flax's weights",
    "adapter_model.safetensors": "an adapter (LoRA) without its base model",
}

_ENTRYPOINT = "load it by a callable: `model: {entrypoint: models/mine.py:load}`"

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


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """Model folder in Hugging Face's form: its configs and weight files.

    Attributes:
        path: The folder that holds config.json; of a hub's cache, the snapshot.
        config: config.json.
        processor: How images or sounds become the model's inputs; empty where no file says it.
        tokenizer: tokenizer_config.json; empty where there is none.
        generation: generation_config.json; of a folder without it config.json, which had its keys once.
        read: The files that were read, absolute.
        weights: Those in safetensors, with the index of shards; empty if there are none.
        pickles: Those that are pickles; read only where there are no others.
    """

    path: Path
    config: Mapping[str, Any]
    processor: Mapping[str, Any]
    tokenizer: Mapping[str, Any]
    generation: Mapping[str, Any]
    read: Sequence[Path]
    weights: Sequence[Path]
    pickles: Sequence[Path]


def read_folder(path: Path) -> ModelFolder:
    """Read a folder's descriptions, and list its weights.

    Args:
        path: The folder, or that of a whole model in a hub's cache (`models--ORG--NAME`).

    Raises:
        SourceError: It holds no model that can be loaded, or code that would have to be run.
        OSError: It is not there, or a file can't be read.
    """
    if not path.exists():
        raise FileNotFoundError(path)
    if not path.is_dir():
        raise SourceError(
            f"{path.name} is a file; expected the folder that holds {CONFIG} and the weights",
            "write the folder's path",
        )
    folder, read = _snapshot(path)
    if not (folder / CONFIG).is_file():
        raise _without_config(folder)
    config = read_json(folder / CONFIG)
    read.append(folder / CONFIG)
    if DIFFUSERS_CLASS in config:
        raise SourceError(
            f"{CONFIG} is of diffusers' {config[DIFFUSERS_CLASS]}",
            "write `model: {diffusers: ...}`",
        )
    processor: Mapping[str, Any] = {}
    for name in _PROCESSORS:
        if (folder / name).is_file() and not processor:
            processor = _processor(read_json(folder / name))
            read.append(folder / name)
    tokenizer: Mapping[str, Any] = {}
    if (folder / _TOKENIZER).is_file():
        tokenizer = read_json(folder / _TOKENIZER)
        read.append(folder / _TOKENIZER)
    generation: Mapping[str, Any] = config
    if (folder / GENERATION_CONFIG).is_file():
        generation = read_json(folder / GENERATION_CONFIG)
        read.append(folder / GENERATION_CONFIG)
    _refuse_code(config)
    weights, pickles = (
        folder_weights(folder, _SAFETENSORS, read),
        folder_weights(folder, _PICKLE, read),
    )
    if not weights and not pickles:
        raise _without_weights(folder)
    return ModelFolder(
        folder, config, processor, tokenizer, generation, tuple(read), weights, pickles
    )


def is_model_folder(path: Path) -> bool:
    """Return whether a folder has the form of a model's, be it one that can be loaded or not."""
    if (path / "snapshots").is_dir():
        return True
    return (path / CONFIG).is_file() and not is_of_diffusers(path)


def is_of_diffusers(path: Path) -> bool:
    """Return whether a folder holds a model of diffusers'."""
    config = _json_or_none(path / CONFIG)
    return isinstance(config, Mapping) and DIFFUSERS_CLASS in config


def declared_weights(folder: ModelFolder, *, allow_pickle: bool) -> Sequence[Path]:
    """The files of weights that are loaded.

    Raises:
        SourceError: There are pickles alone, and they are not allowed.
    """
    if folder.weights:
        return folder.weights
    if not allow_pickle:
        raise SourceError(
            f"the folder's weights are a pickle, {folder.pickles[0].name}: a program that loading runs",
            "save them by `save_pretrained`, which writes safetensors; or, if you trust it, write "
            "`allow_pickle: true`",
        )
    return folder.pickles


def _snapshot(path: Path) -> tuple[Path, list[Path]]:
    """The folder of the files, and what was read to find it."""
    snapshots = path / "snapshots"
    if (path / CONFIG).exists() or not snapshots.is_dir():
        return path, []
    main = path / "refs" / "main"
    if main.is_file():
        commit = read_user_file(main).decode("utf-8", "replace").strip()
        if "/" not in commit and commit and (snapshots / commit).is_dir():
            return snapshots / commit, [main]
    found = sorted(each.name for each in snapshots.iterdir() if each.is_dir())
    if len(found) == 1:
        return snapshots / found[0], []
    raise SourceError(
        f"{path.name} is a hub's cache with {len(found)} snapshots, and refs/main names none of them",
        f"name one: `{path.name}/snapshots/{found[0] if found else 'COMMIT'}`",
    )


def read_json(file: Path) -> dict[str, Any]:
    """Return the mapping that a file of JSON holds.

    Raises:
        SourceError: It holds none.
        OSError: It can't be read.
    """
    try:
        found = json.loads(read_user_file(file))
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "it is nested too deeply"
        raise SourceError(
            f"{file.name} is no JSON: {reason}", "check that the file is complete"
        ) from error
    if not isinstance(found, dict):
        raise SourceError(
            f"{file.name} holds no mapping", f"save it again by `save_pretrained`, {file.name} too"
        )
    return found


def _processor(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part on images or sounds, of a file that may hold several."""
    for key in ("image_processor", "feature_extractor"):
        if isinstance(content.get(key), Mapping):
            part: Mapping[str, Any] = content[key]
            return part
    return content


def _refuse_code(config: Mapping[str, Any]) -> None:
    if config.get("auto_map"):
        raise SourceError(
            f"{CONFIG} has `auto_map`: the model is code that comes with the folder (trust_remote_code)",
            f"read that code and {_ENTRYPOINT}",
        )
    if config.get("quantization_config"):
        raise SourceError(
            f"{CONFIG} has `quantization_config`: its weights are quantized for another runtime",
            "name the original model; `quantization` makes fewer bits of it",
        )


def folder_weights(folder: Path, name: str, read: list[Path]) -> tuple[Path, ...]:
    """Return a file of weights, or an index with its shards; add to `read` what was read.

    Raises:
        SourceError: The index names no files, or some that are not there.
    """
    if (folder / name).is_file():
        return (folder / name,)
    index = folder / f"{name}.index.json"
    if not index.is_file():
        return ()
    read.append(index)
    places = read_json(index).get("weight_map")
    shards = set(places.values()) if isinstance(places, Mapping) else set()
    if not shards or not all(isinstance(each, str) and _is_name(each) for each in shards):
        raise SourceError(
            f"{index.name} names no files of weights in its folder", "download the folder again"
        )
    missing = sorted(each for each in shards if not (folder / each).is_file())
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise SourceError(
            f"{index.name} names {missing[0]}{more}, and there is no such file in the folder",
            "download the missing shards, or save the model again",
        )
    return (index, *(folder / each for each in sorted(shards)))


def _is_name(text: str) -> bool:
    return text not in {"", ".", ".."} and not {"/", "\\", "\0"} & set(text)


def _without_config(folder: Path) -> SourceError:
    names = sorted(each.name for each in folder.iterdir())
    below = next((name for name in names if (folder / name / CONFIG).is_file()), "")
    if below:
        fix = f"it is one folder down: write `{folder.name}/{below}`"
    elif "adapter_config.json" in names:
        fix = "merge the adapter into its base model (`merge_and_unload`) and save that"
    else:
        near = did_you_mean(CONFIG, [name for name in names if name.endswith(".json")])
        fix = f"{near} save the model by `save_pretrained`" if near else ""
    return SourceError(
        f"the folder {folder.name} has no {CONFIG}, which says what the model is",
        fix or "name a folder that `save_pretrained` wrote, or that the hub's cache holds",
    )


def _without_weights(folder: Path) -> SourceError:
    found = next((name for name in _OTHER_WEIGHTS if (folder / name).is_file()), "")
    what = f"the folder {folder.name} has no {_SAFETENSORS}"
    if found:
        what += f"; {found} holds {_OTHER_WEIGHTS[found]}"
    return SourceError(what, "save the model with transformers: `model.save_pretrained(FOLDER)`")


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
    listed = _json_or_none(folder / _MODULES)
    found = []
    for each in listed if isinstance(listed, list) else ():
        kind = str(each.get("type", "")).rpartition(".")[2] if isinstance(each, Mapping) else ""
        if kind == "Pooling":
            found.append(_pooling(_json_or_none(folder / str(each.get("path")) / "config.json")))
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


def _json_or_none(file: Path) -> object:
    """The content; None if it is not there, or no JSON."""
    try:
        return json.loads(read_user_file(file))
    except (OSError, ValueError, RecursionError):
        return None
