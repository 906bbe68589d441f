"""User code that ends its step in odd ways: one sentence, a traceback in the log, the user's own line."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

EXPORT = ("run", "tiny.yaml", "--only", "export")


def put(project, *lines: str) -> None:
    code = "".join(f"    {line}\n" for line in lines)
    project.edit(
        "models/tiny.py", "    torch.manual_seed(0)\n", f"{code}    torch.manual_seed(0)\n"
    )


def log_of(project) -> str:
    (log,) = project.folder.glob("artifacts/runs/*/logs/*.log")
    return log.read_text()


@pytest.mark.parametrize(
    ("line", "said", "logged"),
    [
        ("raise GeneratorExit('x')", "was ended by GeneratorExit: x", "GeneratorExit: x"),
        (
            "raise type('Own', (BaseException,), {})('mine')",
            "was ended by Own: mine",
            "tiny.Own: mine",
        ),
        ("import sys; sys.exit()", "left by sys.exit()", "SystemExit"),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
            "was ended by KeyboardInterrupt",
            "KeyboardInterrupt",
        ),
        (
            "import sys; sys.stderr.close(); raise ArithmeticError('late')",
            "raised ArithmeticError: late",
            "ArithmeticError: late",
        ),
        (
            "raise type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})",
            "ZeroDivisionError: division by zero",
            "Mute: <exception str() failed>",
        ),
        ("import os; os.abort()", "was killed by SIGABRT", "Fatal Python error: Aborted"),
    ],
)
def test_whatever_ends_the_code_is_one_sentence_and_a_traceback(project, line, said, logged):
    put(project, line)
    done = project("run", "tiny.yaml", "--only", "export", "--json")
    assert done.code == 1
    assert said in done.out
    assert '"models/tiny.py:6"' in done.out
    assert logged in log_of(project)
    assert "models/tiny.py" in log_of(project)


def test_a_process_that_ends_itself_is_said_to(project):
    put(project, "import os; os._exit(0)")
    done = project(*EXPORT)
    assert done.code == 1
    assert "ended with status 0 and without a result, as by os._exit(0)" in done.out


def test_code_sees_the_arguments_that_python_file_would_give_it(project):
    put(
        project,
        "import argparse, sys",
        "argparse.ArgumentParser().parse_args()",
        "assert sys.argv == ['models/tiny.py'], sys.argv",
        "assert sys.orig_argv[1:] == ['models/tiny.py'], sys.orig_argv",
    )
    done = project(*EXPORT)
    assert done.code == 0, done.out


def test_code_that_wants_arguments_is_reported_where_they_are_given(project):
    put(project, "import argparse; parser = argparse.ArgumentParser()")
    put(project, "parser.add_argument('--size', required=True); parser.parse_args()")
    done = project(*EXPORT)
    assert done.code == 1
    assert "the step's code left by sys.exit(2)" in done.out
    assert "fix: code in a step has no command line: give it its values in `args:`" in done.out
    assert "usage: tiny.py" in log_of(project)
