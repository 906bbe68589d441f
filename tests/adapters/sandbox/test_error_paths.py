from __future__ import annotations

import os
from pathlib import Path

import pytest

from onnxbuild.adapters.sandbox.error_paths import named_file


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


def found(call, project: Path) -> str:
    path = named_file(
        raised_by(call), str(project), "", lambda path: path.startswith(str(project))
    )
    return "" if path is None else os.path.relpath(path, project)


def test_a_file_is_found_in_the_errors_words(project):
    assert found(lambda: fail(f"load of '{project}/a.json' failed"), project) == "a.json"
    assert found(lambda: fail(f"can't open {project}/a.json."), project) == "a.json"
    assert found(lambda: fail(f"no file {project}/z.json"), project) == ""


def test_a_file_is_found_in_a_variable_and_in_a_list(project):
    def variable():
        path = project / "sub/b.bin"
        fail("denied")
        return path

    def listed():
        paths = [str(project / "a.json")]
        fail("denied")
        return paths

    assert found(variable, project) == "sub/b.bin"
    assert found(listed, project) == "a.json"


def test_a_file_that_no_variable_holds_is_found_by_the_constants_of_the_line(project):
    class Holder:
        folder = project

    def read():
        Holder.folder.joinpath("a.json")
        fail("denied", Holder.folder / "other/b.bin")

    assert found(read, project) == "sub/other/b.bin"
