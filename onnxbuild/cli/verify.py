"""`onnxbuild verify`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from onnxbuild.cli.options import Number
from onnxbuild.core.errors import UsageError
from onnxbuild.terminal.display import json_option, print_document
from onnxbuild.terminal.table import say

if TYPE_CHECKING:
    from onnxbuild.output.checks import CheckRecord
    from onnxbuild.verification.verify import Checked

_SHOWN = 20


@click.command("verify")
@click.argument("release", type=click.Path(), metavar="FOLDER|ARCHIVE")
@click.option(
    "--key",
    type=click.Path(dir_okay=False),
    metavar="PUBLIC.pem",
    help="The release must be signed with this Ed25519 key.",
)
@click.option("--run", "replays", is_flag=True, help="Run the golden inputs through the models.")
@click.option(
    "--provider",
    "providers",
    multiple=True,
    metavar="NAME",
    help="With --run: this execution provider instead of those that the release names. "
    "May be given several times.",
)
@click.option(
    "--trust-programs",
    is_flag=True,
    help="With --run: run PyTorch's programs (TorchScript, torch.export, AOTInductor), TensorRT's "
    "engines and caches, compiled models and unknown kinds of bundles, too. They can run any code. The kernel lets them write only to "
    "a temporary folder; run them only if you trust the publisher.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=Number(min=0, min_open=True),
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="With --run: stop a model that takes longer than this for all its golden inputs.",
)
@click.option(
    "--rebuild",
    is_flag=True,
    help="Build the release again from the recipe at hand, from nothing, and compare the bytes.",
)
@click.option(
    "--recipe",
    type=click.Path(dir_okay=False),
    help="With --rebuild: the recipe [default: the path recorded in the release, from here].",
)
@json_option()
@click.pass_context
def command(
    ctx: click.Context,
    *,
    release: str,
    key: str | None,
    replays: bool,
    providers: tuple[str, ...],
    trust_programs: bool,
    timeout_s: float,
    rebuild: bool,
    recipe: str | None,
    as_json: bool,
) -> None:
    """Check a release: checksums, signature, provenance, and its golden outputs.

    It is "verified" if the signature is checked (--key) or it is built again (--rebuild). Without these it is
    "consistent": whoever made it may have written all of it.

    \b
    onnxbuild verify dist/bert-1.0.0                 checksums and provenance
    onnxbuild verify dist/bert-1.0.0 --key team.pem  its signature, too
    onnxbuild verify dist/bert-1.0.0 --run           run its golden inputs here
    onnxbuild verify dist/bert-1.0.0 --rebuild       build the same bytes again

    Exit codes: 0 every requested check passed, 3 a golden output is out of its tolerance,
    4 the release is damaged, altered or not reproducible.
    """  # noqa: D301 - click's own mark for text that keeps its lines
    if providers and not replays:
        raise click.UsageError("--provider says where to run the golden inputs: add --run", ctx)
    if trust_programs and not replays:
        raise click.UsageError("--trust-programs says what to run: add --run", ctx)
    if recipe and not rebuild:
        raise click.UsageError("--recipe says what to build: add --rebuild", ctx)
    from onnxbuild.release_format.checksums import check_sums
    from onnxbuild.release_format.opened import opened
    from onnxbuild.release_format.released import check_is_release, read_release
    from onnxbuild.terminal.display import make_display
    from onnxbuild.verification.verify import (
        unproven,
        verify_archive,
        verify_contents,
        verify_files,
        verify_unchanged,
    )

    if providers:
        from onnxbuild.verification.replay import check_providers

        check_providers(providers)
    seen: list[CheckRecord] = []

    def show(checks: Iterator[Checked]) -> int:
        return _note(checks, seen) if as_json else _show(checks)

    if not release:
        raise UsageError(
            "the name of the release is empty", fix="name its folder or its .tar archive"
        )
    with opened(Path(release)) as folder:
        check_is_release(folder, Path(release))
        files = check_sums(folder)
        code = show(verify_files(files, Path(key) if key else None))
        if code == 0:
            found = read_release(files)
            code = show(verify_contents(found))
        if code == 0 and not Path(release).is_dir():
            code = show(iter([verify_archive(found, Path(release))]))
        if code == 0 and replays:
            from onnxbuild.verification.replay import verify_run

            with make_display(as_json=False, verbose=False, on_stderr=as_json) as display:
                run = verify_run(
                    found, providers, trust_programs=trust_programs, timeout_s=timeout_s,
                    events=[display],
                )  # fmt: skip
                code = show(run)
        if code == 0 and rebuild:
            from onnxbuild.verification.rebuild import verify_rebuild

            with make_display(as_json=False, verbose=False, on_stderr=as_json) as display:
                again = verify_rebuild(found, Path(recipe) if recipe else None, events=[display])
                code = show(again)
        code = code or show(verify_unchanged(files))
        is_verified = code == 0 and (key is not None or rebuild)
        if as_json:
            print_document(
                {
                    "type": "verify",
                    "release": release,
                    "consistent": code == 0,
                    "verified": is_verified,
                    "exit_code": code,
                    "checks": seen,
                }
            )
        elif code == 0:
            name = f"{found.about['name']} {found.about['version']}"
            say(f"verified: {name}" if is_verified else f"consistent: {name}; {unproven(files)}")
        else:
            say(f"NOT verified (exit code {code}): {release}", err=True)
    ctx.exit(code)


def _note(checks: Iterator[Checked], seen: list[CheckRecord]) -> int:
    """Note each check as it ends; the exit code of the first that failed."""
    code = 0
    for each in checks:
        state: Literal["ok", "skipped", "failed"] = "skipped" if each.skipped else "ok"
        if each.faults:
            code, state = code or each.exit_code, "failed"
        detail = "" if each.faults else each.detail
        seen.append(
            {"title": each.title, "state": state, "detail": detail, "faults": [*each.faults]}
        )
    return code


def _show(checks: Iterator[Checked]) -> int:
    """Print each check as it ends; the exit code of the first that failed."""
    from onnxbuild.release_format.forms import printable
    from onnxbuild.terminal.display import say_above

    code = 0
    for each in checks:
        if each.faults:
            code = code or each.exit_code
            for fault in each.faults[:_SHOWN]:
                say_above(printable(f"FAILED  {each.title}: {fault}"))
            if len(each.faults) > _SHOWN:
                say_above(f"FAILED  {each.title}: and {len(each.faults) - _SHOWN} more")
        else:
            state = "skipped" if each.skipped else "ok"
            say_above(printable(f"{state:7} {each.title}: {each.detail}"))
    return code
