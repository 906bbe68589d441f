"""The group of all verbs: a verb's module is imported when it is asked for."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from onnxbuild import __version__
from onnxbuild.adapters.console.standard_streams import columns, is_pipe_closed
from onnxbuild.core.errors import UsageError
from onnxbuild.terminal.at_a_glance import VERBS, help_text

_ELSEWHERE = {"completion": "completion", "push": "registry", "pull": "registry"}
"""Verb -> the room that has its command, where that is another than this one."""


class ClosedPipeError(Exception):
    """The output is a pipe that nobody reads; click would exit with 1 for the OSError."""


@contextmanager
def _watch_for_closed_pipes() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        if is_pipe_closed():
            raise ClosedPipeError from error
        raise RuntimeError("a pipe or socket of this process's own was closed") from error


class VerbContext(click.Context):
    """Begins the help of a verb with an example that works here."""

    def get_help(self) -> str:
        """The example, and what click says."""
        from onnxbuild.terminal.examples import example_of

        above = self.find_root().command_path
        example = example_of(self.command_path.removeprefix(f"{above} "))
        return f"Example: {example}\n\n{super().get_help()}" if example else super().get_help()


class Verbs(click.Group):
    """Imports a verb's module when it is asked for: `--help` and completion load none of them."""

    purposes = VERBS

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse as click does, which prints `--help` here; watch for closed pipes."""
        with _watch_for_closed_pipes():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb as click does; watch for closed pipes."""
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
        room = _ELSEWHERE.get(cmd_name)
        module = importlib.import_module(
            f"onnxbuild.{room}.command" if room else f"{__package__}.{cmd_name}"
        )
        command: click.Command = getattr(module, cmd_name if room else "command")
        command.context_class = VerbContext
        for below in getattr(command, "commands", {}).values():
            below.context_class = VerbContext
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb as click does; name the nearest verb in the error."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            from onnxbuild.typed.other_words import verb_hint

            hint = verb_hint(args[0], args[1:], VERBS)
            hint = f" {hint}" if hint else ""
            raise click.UsageError(f"No such command '{args[0]}'.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        """Return the help: all verbs and what they do."""
        return help_text(ctx.command_path, columns())


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="onnxbuild %(version)s")
def cli() -> None:
    """The command `onnxbuild`; what it is for is in `help`."""
    gone = no_working_folder()
    if gone:
        raise gone


def no_working_folder() -> UsageError | None:
    """Return what to say if the working folder was removed; None if it is there."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return UsageError(
            "the folder that this was started in does not exist any more",
            fix='go to one that does; if it was made anew: `cd "$PWD"`',
        )
    return None
