"""`onnxbuild release`."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onnxbuild.cli.executors import executor_of, executor_option
from onnxbuild.cli.options import PathName, jobs_option, quiet_option, store_option
from onnxbuild.project_folder import find_project
from onnxbuild.terminal.display import json_option, print_document
from onnxbuild.terminal.table import say

if TYPE_CHECKING:
    from onnxbuild.release.release import Release


@click.command("release")
@click.argument("recipe", type=click.Path(dir_okay=False), metavar="RECIPE")
@click.option("--version", required=True, help="The release's version: 1.0.0, 2.1.0-rc.1.")
@click.option(
    "-o",
    "--out",
    "--output",
    type=PathName(file_okay=False),
    metavar="FOLDER",
    help="Write it here [default: dist/ at the project's root].",
)
@click.option(
    "--allow-dirty",
    is_flag=True,
    help="Also release files that are not committed; the release lists them.",
)
@click.option(
    "--sign",
    type=PathName(dir_okay=False),
    metavar="PRIVATE.pem",
    help="Sign it with this Ed25519 key. A passphrase is asked for, or taken from "
    "ONNXBUILD_SIGN_PASSPHRASE.",
)
@click.option(
    "--previous",
    type=PathName(),
    metavar="FOLDER|ARCHIVE",
    help="Compare with this release and apply the recipe's `release.budgets`.",
)
@click.option(
    "--push",
    metavar="REGISTRY/REPOSITORY[:TAG]",
    help="Push it there when it is written; without a tag, under its version.",
)
@click.option("--force", is_flag=True, help="Replace a release of this name that differs.")
@store_option()
@jobs_option()
@executor_option()
@json_option()
@quiet_option()
@click.pass_context
def command(
    ctx: click.Context,
    *,
    recipe: str,
    version: str,
    out: str | None,
    allow_dirty: bool,
    sign: str | None,
    previous: str | None,
    push: str | None,
    force: bool,
    store: str | None,
    jobs: int | None,
    executor: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write a release of a recipe: its models, and everything that others need to check them.

    \b
    onnxbuild lock recipes/bert.yaml && git add -A && git commit
    onnxbuild release recipes/bert.yaml --version 1.0.0
    onnxbuild release recipes/bert.yaml --version 1.1.0 --previous dist/bert-1.0.0
    onnxbuild release recipes/bert.yaml --version 1.1.0 --sign private.pem
    onnxbuild release recipes/bert.yaml --version 1.1.0 --push example.org/bert

    Writes dist/NAME-VERSION/ and the same as one archive: models, reports, golden inputs and
    outputs, packages, recipe and lock, checksums, provenance, bill of materials. The build must equal its
    lock, be made from committed files, and pass every gate. Two releases of one commit are then
    identical. `onnxbuild verify` checks a release.

    Exit codes: 0 released, or already there and identical; 3 a gate or a budget failed; 4 something
    differs from the lock or the commit.
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.building.wiring import RunOptions
    from onnxbuild.cli.run import print_end
    from onnxbuild.comparison.text import lines_about_previous
    from onnxbuild.registry.command import push as push_command
    from onnxbuild.registry.reference import parse_destination
    from onnxbuild.release.release import ReleaseRequest, make_release
    from onnxbuild.terminal.display import make_display
    from onnxbuild.terminal.documents import release_document
    from onnxbuild.typed.recipe_files import recipe_file

    wanted = ReleaseRequest(
        recipe=Path(recipe_file(recipe)),
        version=version,
        out=Path(out) if out else None,
        store=store,
        allow_dirty=allow_dirty,
        key=Path(sign) if sign else None,
        previous=Path(previous) if previous else None,
        force=force,
    )
    destination = None if push is None else str(parse_destination(with_tag(push, version)))
    options = RunOptions(jobs)
    ask = _ask if sys.stdin.isatty() else None
    with make_display(as_json=False, verbose=False, quiet=quiet, on_stderr=as_json) as display:
        make_executor = executor_of(find_project(wanted.recipe), executor, options, display)
        result, release = make_release(
            wanted, options, [display], ask=ask, make_executor=make_executor
        )
    if release is None:
        if as_json:
            print_document(release_document(result, None, None))
        else:
            print_end(result)
        ctx.exit(result.exit_code)
    if not as_json:
        _show(release)
        for line in lines_about_previous(release.published.folder, wanted.previous):
            say(line)
    pushed = None
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        if destination is not None:
            folder = os.path.relpath(release.published.folder)
            pushed = ctx.invoke(push_command, source=folder, destination=destination)
    if as_json:
        print_document(release_document(result, release, pushed))


def with_tag(push: str, version: str) -> str:
    """Return a reference that names a tag: the version, in which a registry takes no plus."""
    from onnxbuild.registry.reference import LAYOUT

    has_tag = ":" in push.removeprefix(LAYOUT).rpartition("/")[2] or "@" in push
    return push if has_tag else f"{push}:{version.replace('+', '-')}"


def _ask(question: str) -> str:
    answer: str = click.prompt(question, hide_input=True, err=True)
    return answer


def _show(release: Release) -> None:
    for notice in release.notices:
        say(f"note    {notice}")
    published = release.published
    count = len(release.variants)
    variants = f"{count} variant{'s' if count != 1 else ''} ({', '.join(release.variants)})"
    others = ", ".join(release.others)
    held = ", ".join(part for part in (variants if count else "", others) if part)
    folder = os.path.relpath(published.folder)
    archive = os.path.relpath(published.archive)
    signed = "signed" if release.signed else "not signed"
    say(f"{folder}/  {held}, {published.files} files, {signed}")
    say(f"{archive}  {published.size_bytes / 2**20:.1f} MiB, sha256 {published.sha256}")
    if published.written:
        say(f"released {release.name}; to check it: onnxbuild verify {shlex.quote(folder)}")
    else:
        say(f"{release.name} is already there, identical")
