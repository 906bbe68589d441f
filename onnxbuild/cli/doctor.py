"""`onnxbuild doctor`."""

import contextlib
import io

import click

from onnxbuild.cli.options import store_option
from onnxbuild.core.errors import EXIT_STEP
from onnxbuild.terminal.display import json_option, print_document
from onnxbuild.terminal.table import say


@click.command("doctor")
@store_option()
@json_option()
@click.pass_context
def command(ctx: click.Context, *, store: str | None, as_json: bool) -> None:
    """Check this machine: versions, providers that really load, CPU flags, sandbox, disk.

    Exit 1 if something that every build needs is missing.
    """
    from onnxbuild.terminal.machine_checks import problems_here

    said = io.StringIO()
    with contextlib.redirect_stdout(said) if as_json else contextlib.nullcontext():
        problems = problems_here(store)
    if as_json:
        from onnxbuild.terminal.documents import doctor_document

        print_document(doctor_document(said.getvalue(), problems))
        ctx.exit(EXIT_STEP if problems else 0)
    for problem in problems:
        say(f"problem: {problem.what}")
        say(f"  fix: {problem.fix}")
    if problems:
        ctx.exit(EXIT_STEP)
    say("ok: this machine can build")
