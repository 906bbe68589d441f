"""Print what a store holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from onnxbuild.core.sizes import size_text

if TYPE_CHECKING:
    from onnxbuild.adapters.store.usage import HitRates, Stats
    from onnxbuild.adapters.toolchain.virtual_environments import MadeEnvironment


def _list(heading: str, sizes: Mapping[str, int]) -> None:
    for name, size in sizes.items():
        click.echo(f"  {heading:<11}{size_text(size):>10} {name}")
        heading = ""


def show_stats(
    root: str, found: Stats, rates: HitRates, environments: Sequence[MadeEnvironment]
) -> None:
    """Print what a store holds and how often results were reused.

    Args:
        root: The store's folder.
        found: What it holds.
        rates: How the last runs went.
        environments: Those of all projects.
    """
    by_kind = {**found.bytes_by_kind, "in no result": found.unreferenced_bytes}
    by_recipe = {name or "earlier builds": size for name, size in found.bytes_by_recipe.items()}
    click.echo(f"store        {root}")
    click.echo(f"results      {found.records}")
    click.echo(f"blobs        {found.blobs}, {size_text(found.blob_bytes)}")
    _list("by kind", by_kind)
    _list("by recipe", by_recipe)
    for name, size in found.pinned_bytes.items():
        click.echo(f"pinned       {name}, {size_text(size)}")
    click.echo(f"views        {size_text(found.views_bytes)} (out/)")
    if environments:
        size = sum(each.size_bytes for each in environments)
        click.echo(f"environments {len(environments)}, {size_text(size)} (of all projects)")
    click.echo(f"runs         {found.runs}, {size_text(found.runs_bytes)} of logs")
    rows = found.index_rows
    click.echo(
        f"index.db     {size_text(found.index_bytes)}: {rows['memo']} finished requests, "
        f"{rows['recipe']} recipes, {rows['step']} steps, {rows['stat']} files"
    )
    click.echo(f"quarantine   {size_text(found.quarantine_bytes)}")
    if rates.rate is not None:
        click.echo(
            f"hit rate     {rates.rate:.0%} of the steps of the last {rates.runs} runs: "
            f"{rates.reused} reused, {rates.built} built, {rates.failed} failed "
            "(runs with nothing to look at are not counted)"
        )
