"""Which of the refusals that the kernel reported become the step's error, and which error."""

from __future__ import annotations

from onnxbuild.adapters.sandbox.certain_refusals import certain_refusal
from onnxbuild.adapters.sandbox.undeclared import RefusedStep
from onnxbuild.core.errors import StepError, UndeclaredInputError

PROJECT = "/home/me/project"
READER = RefusedStep(
    "tiny:export",
    project=PROJECT,
    recipe=f"{PROJECT}/tiny.yaml",
    store=f"{PROJECT}/artifacts",
    home="/home/me",
    own_home="",
)
DENIED = StepError("PermissionError: [Errno 13] Permission denied")
OTHER = StepError("ValueError: shapes differ")


def found(error=None, guess=None, asked_by=None, **seen):
    nothing = {"refused": {}, "unlisted": {}, "written": {}}
    return certain_refusal({**nothing, **seen}, error, guess, asked_by or {}, READER)


def test_a_refused_file_is_an_error_even_if_the_code_went_on():
    error = found(refused={f"{PROJECT}/models/a.bin": ""})
    assert isinstance(error, UndeclaredInputError)
    assert "a.bin' is read but not declared" in error.what


def test_what_libraries_look_into_in_passing_is_none_unless_the_step_fails_for_it():
    system = {"/var/lib/sss/mc/passwd": "python3.11"}
    assert found(refused=system) is None
    assert found(OTHER, refused=system) is None
    assert "passwd" in found(DENIED, refused=system).what
    assert found(unlisted={"/data": ""}) is None
    assert "'/data' is read" in found(DENIED, unlisted={"/data": ""}).what


def test_who_asked_is_the_users_line_or_else_the_program():
    path = f"{PROJECT}/a.bin"
    by_line = found(refused={path: "cat"}, asked_by={path: "models/m.py:3"})
    assert "(read at models/m.py:3)" in by_line.what
    assert "(read by cat)" in found(refused={path: "cat"}).what


def test_a_refused_write_is_reported_as_a_write_if_the_step_fails_for_it():
    written = {f"{PROJECT}/cache.txt": "touch"}
    assert found(written=written) is None
    assert found(OTHER, written=written) is None
    error = found(DENIED, written=written)
    assert error.what.startswith("'cache.txt' is written (touch)")
    assert not isinstance(error, UndeclaredInputError)
