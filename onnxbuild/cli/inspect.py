"""`onnxbuild inspect`."""

import json
import os.path
from pathlib import Path
from typing import Any

import click

from onnxbuild.cli.options import store_option
from onnxbuild.core.sizes import size_text
from onnxbuild.document.faults import printable
from onnxbuild.typed.typed_names import find_model

_MOST_OPERATORS = 12
_LEAST_SHARE = 0.005
"""Share of all weights that an element type has at least to be shown."""


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
    path = find_model(model, store, "inspect")
    from onnxbuild.onnxkit.model.inspect import inputs_of, summarize, type_text
    from onnxbuild.onnxkit.model.model_files import disk_bytes, load_graph

    loaded = load_graph(path)
    found = summarize(loaded)
    size = disk_bytes(loaded, path)
    if as_json:
        click.echo(json.dumps({"path": str(path), "bytes": size, **found}, indent=2))
        return
    types = [
        f"{kind:<12} {value.name}: {type_text(value.type, gap='')}"
        for kind, values in (("input", inputs_of(loaded.graph)), ("output", loaded.graph.output))
        for value in values
    ]
    _show(path, size, found, types)


def _show(path: Path, size: int, found: dict[str, Any], types: list[str]) -> None:
    opsets = ", ".join(f"{domain} {version}" for domain, version in found["opsets"].items())
    click.echo(f"model        {os.path.relpath(path)}")
    click.echo(f"size         {size_text(size)}, {found['parameters']:,} parameters")
    click.echo(f"opset        {printable(opsets)}; IR version {found['ir_version']}")
    for line in types:
        click.echo(printable(line))
    weights = found["weights_bytes_by_dtype"]
    for dtype, count in sorted(weights.items(), key=lambda pair: -pair[1]):
        if count >= sum(weights.values()) * _LEAST_SHARE:
            click.echo(f"weights      {dtype}: {size_text(count)}")
    operators = list(found["operators"].items())
    shown = ", ".join(f"{kind} {count}" for kind, count in operators[:_MOST_OPERATORS])
    more = len(operators) - _MOST_OPERATORS
    more_text = f", {more} more" if more > 0 else ""
    click.echo(printable(f"nodes        {found['nodes']}: {shown}{more_text}"))
