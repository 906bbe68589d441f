"""The command `onnxbuild`: its verbs, loaded when they are used, and the last catch."""

from __future__ import annotations

import gc
import importlib
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from onnxbuild import __version__
from onnxbuild.adapters.console.standard_streams import (
    discard_output,
    is_pipe_closed,
    open_standard_streams,
    say_on_stderr,
)
from onnxbuild.adapters.processes.signals import unblock_signals
from onnxbuild.core.errors import (
    EXIT_BUG,
    EXIT_INTERRUPTED,
    BuildError,
    UsageError,
)

VERBS = {
    "run": "Build recipes: what changed is rebuilt, the rest is reused.",
    "plan": "Show what `run` would build, and why.",
    "why": "Show the inputs that made a step run, or would make it run.",
    "diagnose": "Find the step and the nodes that a variant's error comes from, and a remedy.",
    "bench": "Measure variants side by side, and compare them with other models.",
    "lock": "Record all inputs and outputs of a recipe's build in a lock file.",
    "reproduce": "Build again from nothing in another folder, and compare every byte.",
    "release": "Write a release of a locked build: a folder and an archive.",
    "verify": "Check a release: checksums, signature, provenance, golden outputs.",
    "graph": "Draw the graph of steps.",
    "inspect": "Show a model's inputs, outputs, operators and size.",
    "log": "Show what a step printed.",
    "lint": "Check recipes without building anything.",
    "schema": "Print the JSON Schema of recipes, for editors.",
    "doctor": "Check this machine: versions, providers, CPU, sandbox.",
    "cache": "Inspect and clean the store: stats, verify, gc, pins.",
}
_COLLECT_AFTER = 100_000  # objects: a process this short leaves too little behind to look sooner


class _ClosedPipeError(Exception):
    """The output is a pipe that nobody reads; click would exit with 1 for the OSError."""


@contextmanager
def _watch_for_closed_pipes() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        if is_pipe_closed():
            raise _ClosedPipeError from error
        raise RuntimeError("a pipe or socket of this process's own was closed") from error


class Verbs(click.Group):
    """Imports a verb's module when it is asked for: `--help` loads none of them."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Make the context as click does; `--help` is printed here."""
        with _watch_for_closed_pipes():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Invoke the verb as click does."""
        with _watch_for_closed_pipes():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs, in the order of use."""
        del ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command; None if there is no such verb."""
        del ctx
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(f"onnxbuild.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve the verb as click does, with the nearest verb in the message."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], VERBS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            if args[0].endswith((".yaml", ".yml")):
                hint = f" To build it: onnxbuild run {args[0]}"
            raise click.UsageError(f"No such command '{args[0]}'.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs and what they do."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="onnxbuild %(version)s")
def cli() -> None:
    """Build ONNX models from YAML recipes: exported, optimized, quantized, validated, measured.

    \b
    A first build, and the next commands:
      onnxbuild run recipes/bert.yaml             build every variant
      onnxbuild run recipes/bert.yaml --only int8 build one variant
      onnxbuild plan recipes/bert.yaml            what would run, and why
      onnxbuild why bert:export                   the input that changed

    \b
    Exit codes: 0 produced and passed, 1 a step failed, 2 recipe or usage, 3 a gate failed,
    4 not reproducible, 5 undeclared input, 130 interrupted, 141 the output's reader has gone,
    70 a bug in onnxbuild.
    """  # noqa: D301 - click's own mark for text that keeps its lines
    gone = _no_working_folder()
    if gone:
        raise gone


def main() -> None:
    """Run the command line; every way out has its exit code."""
    unblock_signals()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # `nohup` has the second ignored
            signal.signal(number, _on_end)
    gc.set_threshold(_COLLECT_AFTER)
    open_standard_streams()
    try:
        code = _run_command()
        sys.stdout.flush()
    except (_ClosedPipeError, BrokenPipeError):
        discard_output()
        code = 128 + signal.SIGPIPE
    sys.exit(code)


def _run_command() -> int:
    """Run the command that the arguments name.

    Returns: The exit code; what went wrong is said.

    Raises:
        _ClosedPipeError: Nobody reads standard output any more.
        BrokenPipeError: Nobody reads standard error any more.
    """
    try:
        code = cli(standalone_mode=False)
    except click.ClickException as error:
        say_on_stderr(error.show)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _say("interrupted; finished steps are kept", EXIT_INTERRUPTED)
    except BuildError as error:
        return _say(f"error: {error}", error.exit_code)
    except _ClosedPipeError:
        raise
    except OSError as error:  # what the machine refused is no bug: a full disk below /tmp, ...
        from onnxbuild.adapters.disk.atomic_files import store_error

        refused = store_error(error, error.filename or "the output")
        met = _no_working_folder() or refused
        return _say(f"error: {met}", met.exit_code)
    except Exception:  # noqa: BLE001 - the process's edge: a bug is reported as one
        return _say(_bug_report(), EXIT_BUG)
    return code if isinstance(code, int) else 0


def _on_end(number: int, frame: object) -> None:
    """End as Ctrl-C does: children stop, finished steps are kept."""
    del frame
    sys.exit(128 + number)


def _say(text: str, code: int) -> int:
    say_on_stderr(lambda: click.echo(text, err=True))
    return code


def _no_working_folder() -> UsageError | None:
    """Return what to say if the working folder was removed; None if it is there."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return UsageError(
            "the folder that this was started in does not exist any more",
            fix='go to one that does; if it was made anew: `cd "$PWD"`',
        )
    return None


def _bug_report() -> str:
    import platform
    import traceback

    return (
        f"onnxbuild {__version__} met a bug in itself. Please file this, with the recipe:\n"
        f"Python {platform.python_version()} on {platform.platform()}\n"
        f"{traceback.format_exc()}"
    )


if __name__ == "__main__":
    main()
