"""Errors of a step: the file that was refused, by the kernel's report or by the exception; and what else was raised."""

import importlib.util
import os
from pathlib import Path

import pytest

from onnxbuild.adapters.sandbox.error_paths import named_file
from onnxbuild.adapters.sandbox.refusal import certain_refusal
from onnxbuild.adapters.sandbox.uncaught import sentence_of
from onnxbuild.adapters.sandbox.undeclared import RefusedStep, undeclared_files
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


@pytest.fixture
def project(tmp_path):
    for name in ("a.json", "sub/b.bin", "sub/other/b.bin", ".venv/lib/c.txt"):
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return tmp_path / "project"


def raised_by(call) -> Exception:
    with pytest.raises(RuntimeError) as caught:
        call()
    return caught.value


def fail(said: str, *_: object) -> None:
    del _
    raise RuntimeError(said)


def found_by(call, project: Path) -> str:
    path = named_file(
        raised_by(call), str(project), "", lambda path: path.startswith(str(project))
    )
    return "" if path is None else os.path.relpath(path, project)


def test_a_file_is_found_in_the_errors_words(project):
    assert found_by(lambda: fail(f"load of '{project}/a.json' failed"), project) == "a.json"
    assert found_by(lambda: fail(f"can't open {project}/a.json."), project) == "a.json"
    assert found_by(lambda: fail(f"no file {project}/z.json"), project) == ""


def test_a_file_is_found_in_a_variable_and_in_a_list(project):
    def variable():
        path = project / "sub/b.bin"
        fail("denied")
        return path

    def listed():
        paths = [str(project / "a.json")]
        fail("denied")
        return paths

    assert found_by(variable, project) == "sub/b.bin"
    assert found_by(listed, project) == "a.json"


def test_a_file_that_no_variable_holds_is_found_by_the_constants_of_the_line(project):
    class Holder:
        folder = project

    def read():
        Holder.folder.joinpath("a.json")
        fail("denied", Holder.folder / "other/b.bin")

    assert found_by(read, project) == "sub/other/b.bin"


@pytest.fixture
def step(tmp_path):
    project = tmp_path / "project"
    for name in ("data/a.bin", "data/b.bin", "data/c.bin", "models/w.bin", "models/tiny.py"):
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return RefusedStep(
        "tiny:export",
        project=str(project),
        recipe=str(project / "tiny.yaml"),
        store=str(project / "artifacts"),
        home=str(tmp_path / "home"),
        own_home="",
        declared=frozenset({"data/c.bin"}),
    )


def said(step, readers, **more):
    error = undeclared_files(
        {f"{step.project}/{k}": who for k, who in readers.items()}, step, **more
    )
    assert (error.where, error.exit_code) == ("tiny.yaml (tiny:export)", 5)
    return error.what, error.fix


def test_one_of_a_folder_of_data_names_the_folder_too(step):
    assert said(step, {"data/a.bin": "models/tiny.py:4"}) == (
        "'data/a.bin' is read but not declared (read at models/tiny.py:4)",
        (
            "declare it next to the entrypoint that reads it: `files: [data/a.bin]`, "
            "or the whole folder: `files: [data/]`"
        ),
    )


def test_a_file_next_to_code_is_named_alone(step):
    assert said(step, {"models/w.bin": ""}) == (
        "'models/w.bin' is read but not declared",
        "declare it next to the entrypoint that reads it: `files: [models/w.bin]`",
    )


def test_several_are_one_message_with_one_line(step):
    readers = {"models/w.bin": "models/tiny.py:4", "data/a.bin": "models/tiny.py:4"}
    assert said(step, readers) == (
        "'models/w.bin' and 'data/a.bin' are read but not declared (read at models/tiny.py:4)",
        (
            "declare them next to the entrypoint that reads them: "
            "`files: [models/w.bin, data/a.bin]`, or with whole folders: "
            "`files: [models/w.bin, data/]`"
        ),
    )
    readers = {"data/a.bin": "models/tiny.py:4", "data/b.bin": "models/tiny.py:7"}
    assert said(step, readers)[0] == (
        "'data/a.bin' (read at models/tiny.py:4) and 'data/b.bin' (read at models/tiny.py:7) "
        "are read but not declared"
    )


def test_what_the_same_code_names_is_known_at_once(step):
    Path(step.project, "models/tiny.py").write_text(
        "HERE / '../data/a.bin', HERE / '../data/b.bin', HERE / '../data/c.bin', 'w.bin'\n"
    )
    assert said(step, {"data/a.bin": "models/tiny.py:1"}) == (
        (
            "'data/a.bin' is read but not declared (read at models/tiny.py:1); the same code names "
            "'data/b.bin' and 'models/w.bin', not declared either"
        ),
        (
            "declare them next to the entrypoint that reads them: "
            "`files: [data/a.bin, data/b.bin, models/w.bin]`, or with whole folders: "
            "`files: [data/, models/w.bin]`"
        ),
    )


def test_an_import_within_a_package_has_the_module_to_write_as_its_fix(tmp_path):
    file = tmp_path / "models/pkg/net.py"
    file.parent.mkdir(parents=True)
    file.write_text("import math\nfrom .layers import Layer\n")
    spec = importlib.util.spec_from_file_location("net", file)
    with pytest.raises(ImportError) as caught:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    found = sentence_of(caught.value, "m:export", str(tmp_path), lambda path: path)
    assert found.where == "models/pkg/net.py:2"
    assert found.fix.startswith(
        "write `models.pkg.net:CALLABLE` (a file by itself is in no package)"
    )
