"""User code that ends its step in odd ways: one sentence, a traceback in the log, the user's own line."""

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
        ("import sys; sys.exit()", "left by sys.exit()", "SystemExit"),
        (
            "import sys; sys.stderr.close(); raise ArithmeticError('late')",
            "raised ArithmeticError: late",
            "ArithmeticError: late",
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
