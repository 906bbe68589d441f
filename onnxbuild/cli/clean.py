"""`onnxbuild clean`."""

import os
from pathlib import Path

import click

from onnxbuild.cli.options import store_option
from onnxbuild.terminal.display import json_option, print_document
from onnxbuild.terminal.table import say


@click.command("clean")
@store_option()
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and remove nothing.")
@json_option()
def command(*, store: str | None, dry_run: bool, as_json: bool) -> None:
    """Remove the folders below out/ whose recipe or variant is gone.

    Files in them that onnxbuild did not make, or that were changed since, are kept and listed.
    Cached results stay; `onnxbuild cache gc` removes those.
    """
    from onnxbuild.adapters.locate import store_root
    from onnxbuild.adapters.store.layout import is_store
    from onnxbuild.building.out_folders.clean import clean
    from onnxbuild.core.sizes import size_text
    from onnxbuild.project_folder import find_project

    project = find_project(Path("recipe.yaml"))
    root = store_root(project, store)
    report = clean(root, project, dry_run=dry_run) if is_store(root) else None
    if as_json:
        from onnxbuild.terminal.store_output import clean_document

        print_document(clean_document(report, dry_run=dry_run))
        return
    for sentence in report.unread if report else ():
        say(f"note: {sentence}", err=True)
    verb = "would remove" if dry_run else "removed"
    for each in report.cleaned if report else ():
        say(f"{verb} {os.path.relpath(each.folder)}: {size_text(each.size_bytes)}; {each.why}")
        for path in each.kept:
            say(f"  kept {os.path.relpath(path)}: not made by onnxbuild, or changed since")
    if not report or not report.cleaned:
        say("nothing is left over")
