"""Find the model that `MODEL.onnx` or `RECIPE:VARIANT` on the command line means."""

from __future__ import annotations

from pathlib import Path

from onnxbuild.core.errors import UsageError, did_you_mean
from onnxbuild.core.step import MODEL_FILE, ORT_FILE
from onnxbuild.typed_names import split_name


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
    from onnxbuild.api import Request, graph_of
    from onnxbuild.catalog import PROGRAM_FORMATS

    recipe, variant = split_name(name, store)
    if variant in PROGRAM_FORMATS:
        raise UsageError(
            f"'{variant}' is not an ONNX variant; {verb} shows ONNX models",
            fix=f"see manifest.json in its folder: onnxbuild run {recipe} --only {variant}",
        )
    request = Request((recipe,), store=store)
    made = [each for each in graph_of(request).deliverables if each.family != "report"]
    found = [each for each in made if f"{each.recipe}:{each.name}" == name]
    found = found or [each for each in made if each.name == variant]
    if not found:
        known = list(dict.fromkeys(each.name for each in made))
        raise UsageError(
            f"'{recipe}' has no variant '{variant}'; it has {', '.join(known)}",
            fix=did_you_mean(variant, known),
        )
    if len(found) > 1:
        names = [f"{each.recipe}:{each.name}" for each in found]
        raise UsageError(
            f"'{variant}' is a variant of several recipes: {', '.join(names)}",
            fix=f"onnxbuild {verb} {names[0]}",
        )
    path = request.store_root / "out" / found[0].recipe / variant / MODEL_FILE
    if path.with_name(ORT_FILE).is_file():
        raise UsageError(
            f"{path.with_name(ORT_FILE)} is in ORT format; {verb} shows ONNX models",
            fix="see manifest.json and required_operators.config next to it",
        )
    if not path.is_file():
        raise UsageError(
            f"{name} is not built: there is no {path}",
            fix=f"onnxbuild run {recipe} --only {variant}",
        )
    return path
