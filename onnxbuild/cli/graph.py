"""`onnxbuild graph`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onnxbuild.cli.options import only_option, recipes_argument, set_option
from onnxbuild.terminal.display import json_option, print_document

if TYPE_CHECKING:
    from onnxbuild.core.graph import Graph


@click.command("graph")
@recipes_argument()
@only_option()
@set_option()
@click.option(
    "--format",
    "style",
    type=click.Choice(["mermaid", "dot"]),
    default="mermaid",
    show_default=True,
    help="mermaid for Markdown, dot for Graphviz.",
)
@json_option()
def command(
    *,
    recipes: tuple[str, ...],
    only: tuple[str, ...],
    settings: Mapping[str, str],
    style: str,
    as_json: bool,
) -> None:
    """Draw the graph of steps as text.

    \b
    onnxbuild graph recipes/bert.yaml --format dot | dot -Tsvg > bert.svg
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.building.api import Request, graph_of

    graph = graph_of(Request(tuple(map(Path, recipes)), only, settings))
    if as_json:
        from onnxbuild.terminal.documents import graph_document

        print_document(graph_document(graph))
        return
    lines = _mermaid(graph) if style == "mermaid" else _dot(graph)
    click.echo("\n".join(lines))


def _mermaid(graph: Graph) -> list[str]:
    number = {name: f"s{n}" for n, name in enumerate(graph.steps)}
    lines = ["flowchart LR"]
    lines += [f'  {number[name]}["{name}"]' for name in graph.steps]
    for name, step in graph.steps.items():
        needs = dict.fromkeys(ref.step for ref in step.inputs.values())
        lines += [f"  {number[need]} --> {number[name]}" for need in needs]
    return lines


def _dot(graph: Graph) -> list[str]:
    lines = ["digraph onnxbuild {", "  rankdir=LR;", "  node [shape=box];"]
    for name, step in graph.steps.items():
        lines.append(f'  "{name}" [label="{name}\\n{step.kind}"];')
        for key, ref in step.inputs.items():
            lines.append(f'  "{ref.step}" -> "{name}" [label="{key}"];')
    return [*lines, "}"]
