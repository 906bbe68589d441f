"""Argument of an InferenceSession for a model whose weights may be a link into the store."""

from __future__ import annotations

from pathlib import Path

from onnxbuild.onnxkit.model.model_files import WEIGHTS_FILE, load_model, model_path, name_weights

_WEIGHTS_FOLDER = "session.model_external_initializers_file_folder_path"
"""onnxruntime_session_options_config_keys.h: where external data of a model in memory is."""


def loadable(path: Path, entries: dict[str, str]) -> str | bytes:
    """Return an InferenceSession's argument: the model's path; its graph where a link leads to its weights.

    ONNX Runtime refuses weights in another folder than the model's file, and a step's inputs are
    links into the store. With the weights' real folder and name, it maps them from there.

    Args:
        path: A model's file, or the folder that holds MODEL_FILE.
        entries: Config of the session; gets the folder.

    Raises:
        StepError: The model can't be read.
    """
    file = model_path(path)
    weights = file.parent / WEIGHTS_FILE
    if not weights.is_symlink():
        return str(file)
    real = weights.resolve()
    model = load_model(file, weights="left")
    name_weights(model, real.name)
    entries[_WEIGHTS_FOLDER] = str(real.parent)
    content: bytes = model.SerializeToString()
    return content
