"""`onnxbuild inspect`."""

from __future__ import annotations

import json
import os.path
from pathlib import Path
from typing import Any

import click

from onnxbuild.cli.options import store_option
from onnxbuild.core.errors import UsageError, did_you_mean
from onnxbuild.core.step import MODEL_FILE, ORT_FILE
from onnxbuild.typed_names import split_name

_MOST_OPERATORS = 12
_MIB = 1 << 20


@click.command("inspect")
@click.argument("model", metavar="MODEL.onnx|RECIPE:VARIANT")
@store_option()
@click.option("--json", "as_json", is_flag=True, help="Print all of it as JSON.")
def command(*, model: str, store: str | None, as_json: bool) -> None:
    """Show a model's inputs, outputs, operators, parameters and size.

    \b
    onnxbuild inspect model.onnx
    onnxbuild inspect bert:int8
    """  # noqa: D301 - click's own mark for text that keeps its lines
    path = Path(model)
    if not path.is_file():
        path = _variant_model(model, store)
    from onnxbuild.onnxkit.model.inspect import summarize
    from onnxbuild.onnxkit.model.model_files import load_model

    loaded = load_model(path, weights="left")
    if not loaded.ir_version or not loaded.HasField("graph"):
        raise UsageError(f"{model} is not an ONNX model: it has no graph", where=str(path))
    found = summarize(loaded)
    weights = {
        entry.value
        for each in loaded.graph.initializer
        for entry in each.external_data
        if entry.key == "location"
    }
    size = sum(
        (path.parent / name).stat().st_size
        for name in {path.name, *weights}
        if (path.parent / name).is_file()
    )
    if as_json:
        click.echo(json.dumps({"path": str(path), "bytes": size, **found}, indent=2))
        return
    _show(path, size, found)


def _variant_model(name: str, store: str | None) -> Path:
    if name.endswith(".onnx"):
        raise UsageError(f"there is no model '{name}'", fix="give the path of an .onnx file")
    from onnxbuild.api import Request, graph_of
    from onnxbuild.catalog import PROGRAM_FORMATS

    recipe, variant = split_name(name, store)
    if variant in PROGRAM_FORMATS:
        raise UsageError(
            f"'{variant}' is not an ONNX variant; inspect shows ONNX models",
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
            fix=f"onnxbuild inspect {names[0]}",
        )
    path = request.store_root / "out" / found[0].recipe / variant / MODEL_FILE
    if path.with_name(ORT_FILE).is_file():
        raise UsageError(
            f"{path.with_name(ORT_FILE)} is in ORT format; inspect shows ONNX models",
            fix="see manifest.json and required_operators.config next to it",
        )
    if not path.is_file():
        raise UsageError(
            f"{name} is not built: there is no {path}",
            fix=f"onnxbuild run {recipe} --only {variant}",
        )
    return path


def _show(path: Path, size: int, found: dict[str, Any]) -> None:
    opsets = ", ".join(f"{domain} {version}" for domain, version in found["opsets"].items())
    click.echo(f"model        {os.path.relpath(path)}")
    click.echo(f"size         {size / _MIB:.1f} MiB, {found['parameters']:,} parameters")
    click.echo(f"opset        {opsets}; IR version {found['ir_version']}")
    for kind in ("inputs", "outputs"):
        for value in found[kind]:
            shape = ", ".join(map(str, value["shape"] or []))
            click.echo(f"{kind[:-1]:<12} {value['name']}: {value['dtype']}[{shape}]")
    weights = found["weights_bytes_by_dtype"]
    for dtype, count in sorted(weights.items(), key=lambda pair: -pair[1]):
        if count >= _MIB / 20:
            click.echo(f"weights      {dtype}: {count / _MIB:.1f} MiB")
    operators = list(found["operators"].items())
    shown = ", ".join(f"{kind} {count}" for kind, count in operators[:_MOST_OPERATORS])
    more = len(operators) - _MOST_OPERATORS
    click.echo(f"nodes        {found['nodes']}: {shown}" + (f", {more} more" if more > 0 else ""))
