"""Load the model of a .keras archive on Keras' torch backend, as a module that takes its inputs by name."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.external_code import external_code, message_of
from onnxbuild.onnxkit.keras_models.archive import INPUTS, KERAS, OUTPUTS, WRITTEN_BY

if TYPE_CHECKING:
    import torch


INSTALL = "pip install 'onnxbuild[keras]'"

_BACKEND = "torch"

_SETTINGS = {"KERAS_BACKEND": _BACKEND, "KERAS_TORCH_DEVICE": "cpu"}
"""Environment of Keras. Its keras.json, which would set types, is looked for at home: in a step, an empty folder."""


def load_keras(path: Path, name: str, facts: Mapping[str, Any], where: str) -> torch.nn.Module:
    """The model of an archive, for inference.

    Args:
        path: The archive. `safe_mode` stays on: no code of it runs.
        name: How messages call it.
        facts: INPUTS, OUTPUTS and WRITTEN_BY.
        where: `recipe:step`, for messages.

    Raises:
        StepError: Keras is not there, runs on another backend, or can't load it.
    """
    keras = _keras(where)
    version = str(facts[WRITTEN_BY])

    def blamed(error: BaseException) -> StepError:
        first = next((line.strip() for line in message_of(error).splitlines() if line.strip()), "")
        made_by = f" (written by Keras {version})" if version else ""
        is_later = _numbers(version) > _numbers(keras.__version__)
        fix = (
            f"pip install 'keras>={version}'"
            if is_later
            else "load it by `keras.saving.load_model(FILE)`"
        )
        shown = f"{type(error).__name__}: {first}".replace(str(path), name)
        return StepError(
            f"Keras {keras.__version__} can't load {name}{made_by}: {shown}", where=where, fix=fix
        )

    with external_code(blamed):
        model = keras.saving.load_model(path, compile=False, safe_mode=True)
        return _named(keras, model, list(facts[INPUTS]), list(facts[OUTPUTS]))


def module_of_keras(made: object, where: str) -> torch.nn.Module | None:
    """A keras.Model on the torch backend as a module that takes its inputs by name; None for all else.

    A class of the user's takes the arguments of its `call` by name already.

    Raises:
        StepError: It was never called, so that nothing says what it takes.
    """
    keras = sys.modules.get(KERAS)
    if (
        keras is None
        or not isinstance(made, getattr(keras, "Model", ()))
        or not _is_on_torch(keras)
    ):
        return None
    struct = _structure(made)
    if struct is None:
        if not getattr(made, "built", False):
            raise StepError(
                f"the keras.Model {type(made).__name__} is not built: it has no weights yet",
                where=where,
                fix="call it once, or load its weights, before it is returned",
            )
        return None
    if isinstance(struct, Mapping):
        names = sorted(struct)
    else:
        names = [_plain(each.name) for each in keras.tree.flatten(struct)]
    return _named(keras, made, names, [])


def _keras(where: str) -> Any:
    """Keras, on the torch backend.

    Raises:
        StepError: It is not installed, or code of the user's has imported it on another backend.
    """
    if KERAS not in sys.modules:
        os.environ.update(_SETTINGS)  # noqa: TID251 - Keras takes its backend from nowhere else
    try:
        import keras
    except ImportError as error:
        raise StepError(
            f"a .keras archive is loaded by Keras, which can't be imported: {error}",
            where=where,
            fix=INSTALL,
        ) from error
    if not _is_on_torch(keras):
        raise StepError(
            f"Keras was imported on the {keras.config.backend()} backend; models are exported on {_BACKEND}",
            where=where,
            fix="set KERAS_BACKEND=torch before your code imports keras",
        )
    return keras


def _is_on_torch(keras: Any) -> bool:
    return bool(keras.config.backend() == _BACKEND)


def _structure(model: Any) -> Any:
    """The symbolic inputs of a Functional or a built Sequential model; None for a class of the user's."""
    functional = getattr(model, "_functional", None) or model
    return getattr(functional, "_inputs_struct", None)


def _named(
    keras: Any, model: Any, names: Sequence[str], outputs: Sequence[str]
) -> torch.nn.Module:
    """A module that calls a model in inference mode.

    Args:
        model: A Functional or Sequential model.
        names: Its inputs, in the order in which Keras flattens them.
        outputs: Names for what it returns, in that order; empty to return it as it is.
    """
    struct = _structure(model)

    def call(given: Mapping[str, Any]) -> Any:
        packed = keras.tree.pack_sequence_as(struct, [given[name] for name in names])
        made = model(packed, training=False)
        return dict(zip(outputs, keras.tree.flatten(made), strict=True)) if outputs else made

    return _module(model, names, call)


def _module(model: Any, names: Sequence[str], call: Any) -> torch.nn.Module:
    import torch

    class Archive(torch.nn.Module):  # type: ignore[misc] # torch is Any here
        """Calls the model."""

        def __init__(self) -> None:
            super().__init__()
            self.add_module(KERAS, model)
            self.forward = forward

    def forward(*args: Any, **inputs: Any) -> Any:
        return call({**dict(zip(names, args, strict=False)), **inputs})

    forward.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
    )
    Archive.__name__ = Archive.__qualname__ = type(model).__name__
    return Archive().eval()


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_./]+", "_", name)


def _numbers(version: str) -> list[int]:
    return [int(each) for each in re.findall(r"\d+", version)[:3]]
