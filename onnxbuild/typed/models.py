"""Find the model that `MODEL.onnx` or `RECIPE:VARIANT` on the command line means."""

from __future__ import annotations

from pathlib import Path

from onnxbuild.core.environment import RUNTIME
from onnxbuild.core.errors import UsageError
from onnxbuild.core.graph import FAMILIES
from onnxbuild.core.step import MODEL_FILE, ORT_FILE
from onnxbuild.typed.names import find_name, find_onnx

_ONNX = [each for each in FAMILIES.values() if each.runtime == RUNTIME]
"""Families of bundles that ONNX Runtime opens."""


def find_model(name: str, store: str | None, verb: str) -> Path:
    """Return the file of a model: the one that is named, or that of a built variant.

    Args:
        name: `model.onnx`, `bert:int8`, `recipes/bert.yaml:int8`.
        store: `--store`.
        verb: What is typed again, with another name.

    Raises:
        UsageError: There is none, it is no ONNX model, or several are meant.
    """
    return Path(name) if Path(name).is_file() else _variant_model(name, store, verb)


def _variant_model(name: str, store: str | None, verb: str) -> Path:
    if name.endswith(".onnx"):
        raise UsageError(f"there is no model '{name}'", fix="give the path of an .onnx file")
    from onnxbuild.building.api import Request, graph_of
    from onnxbuild.building.type_again import run_again

    asked = find_name(name, store, "VARIANT")
    request = Request((asked.file,), store=store)
    found = find_onnx(graph_of(request), asked, verb, _ONNX)
    path = request.store_root / "out" / found.recipe / found.name / MODEL_FILE
    if path.with_name(ORT_FILE).is_file():
        raise UsageError(
            f"{path.with_name(ORT_FILE)} is in ORT format; {verb} shows ONNX models",
            fix="see manifest.json and required_operators.config next to it",
        )
    if not path.is_file():
        raise UsageError(
            f"{name} is not built: there is no {path}",
            fix=run_again(asked.file, store=store, only=f"{found.recipe}:{found.name}"),
        )
    return path
