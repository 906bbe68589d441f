"""`onnxbuild inspect`."""

from __future__ import annotations

import json
import os.path
from pathlib import Path
from typing import Any

import click

from onnxbuild.cli.options import store_option
from onnxbuild.typed.models import find_model

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
    path = find_model(model, store, "inspect")
    from onnxbuild.onnxkit.model.inspect import summarize
    from onnxbuild.onnxkit.model.model_files import disk_bytes, load_graph

    loaded = load_graph(path)
    found = summarize(loaded)
    size = disk_bytes(loaded, path)
    if as_json:
        click.echo(json.dumps({"path": str(path), "bytes": size, **found}, indent=2))
        return
    _show(path, size, found)


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
