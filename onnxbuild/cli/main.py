"""The command `onnxbuild`: short answers, else the verbs, and the last catch."""

from __future__ import annotations

import gc
import io
import signal
import sys
from collections.abc import Sequence

from onnxbuild import __version__
from onnxbuild.adapters.console.standard_streams import (
    discard_output,
    open_standard_streams,
    say_on_stderr,
)
from onnxbuild.core.errors import EXIT_BUG, EXIT_INTERRUPTED, BuildError
from onnxbuild.processes.signals import end_on_signals, unblock_signals
from onnxbuild.terminal.at_a_glance import answer

TYPE_CHECKING = False  # as in typing, which takes longer to import than most of this
if TYPE_CHECKING:
    from onnxbuild.cli.kinds import Kinds

_COLLECT_AFTER = 100_000  # objects: a process this short leaves too little behind to look sooner


def main() -> None:
    """Run the command line; every way out has its exit code."""
    unblock_signals()
    end_on_signals()
    gc.set_threshold(_COLLECT_AFTER)
    open_standard_streams()
    try:
        code = run_command(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
        code = 128 + signal.SIGPIPE
    sys.exit(code)


def run_command(arguments: Sequence[str], kinds: Kinds | None = None) -> int:
    """Run the command that the arguments name, in this process as it is.

    Args:
        arguments: Those of the command line.
        kinds: Step kinds, and what runs them; None for this package's own.

    Returns: The exit code; what went wrong is said.

    Raises:
        BrokenPipeError: Nobody reads standard output or standard error any more.
    """
    try:
        found = answer(arguments) if kinds is None else None
        if found is None:
            return _run_verb(arguments, kinds)
        for lines, stream in zip(found, (sys.stdout, sys.stderr), strict=True):
            stream.writelines(f"{line}\n" for line in lines)
            stream.flush()
    except KeyboardInterrupt:
        text = "interrupted; finished steps are kept"
        return _say(text, EXIT_INTERRUPTED, arguments)
    except BuildError as error:
        return _say(f"error: {error}", error.exit_code, arguments, error)
    except BrokenPipeError:
        raise
    except OSError as error:  # what the machine refused is no bug: a full disk below /tmp, ...
        from onnxbuild.adapters.disk.atomic_files import output_error, store_error
        from onnxbuild.cli.group import no_working_folder

        refused = (
            store_error(error, error.filename)
            if error.filename
            else output_error(error, "the output")
        )
        met = no_working_folder() or refused
        return _say(f"error: {met}", met.exit_code, arguments, met)
    except Exception:  # noqa: BLE001 - the process's edge: a bug is reported as one
        return _say(_bug_report(), EXIT_BUG, arguments)
    return 0


def _run_verb(arguments: Sequence[str], kinds: Kinds | None) -> int:
    """Run the verb that the arguments name.

    Args:
        arguments: Those of the command line.
        kinds: As for `run_command`.

    Returns: The exit code.

    Raises:
        KeyboardInterrupt: It was interrupted.
        BrokenPipeError: Nobody reads the output any more.
    """
    import click

    from onnxbuild.cli.group import ClosedPipeError, cli

    try:
        code = cli([*arguments], standalone_mode=False, obj=kinds)
    except click.ClickException as error:
        if isinstance(error, click.NoSuchOption):
            from onnxbuild.typed.other_words import with_hint

            error = with_hint(error)
        shown = io.StringIO()
        error.show(shown)
        _write_error(shown.getvalue())
        _print_error(arguments, error.format_message(), error.exit_code)
        return error.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None
    except ClosedPipeError as error:
        raise BrokenPipeError from error
    return code if isinstance(code, int) else 0


def _say(text: str, code: int, arguments: Sequence[str], error: BuildError | None = None) -> int:
    _write_error(f"{text}\n")
    _print_error(arguments, text, code, error)
    return code


def _write_error(text: str) -> None:
    from onnxbuild.adapters.console.wrap import fitted

    def say() -> None:
        sys.stderr.write(fitted(text, err=True))
        sys.stderr.flush()

    say_on_stderr(say)


def _print_error(
    arguments: Sequence[str], text: str, code: int, error: BuildError | None = None
) -> None:
    """Print an error as JSON, where that is asked for."""
    if "--json" not in arguments:
        return
    from onnxbuild.output.error_record import error_record, plain_error
    from onnxbuild.terminal.display import print_line, wants_json

    if wants_json(arguments):
        record = plain_error(text, code) if error is None else error_record(error)
        say_on_stderr(lambda: print_line(record))


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
