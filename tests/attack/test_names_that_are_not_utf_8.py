"""File names that are no text: they work, or a sentence names them; none is a bug."""

import json
import os

import pytest

pytestmark = pytest.mark.slow

ODD = os.fsdecode(b"w\xff.bin")
EXPORT = ("run", "tiny.yaml", "--only", "export")


def write(project, name: str, text: str = "1") -> None:
    (project.folder / "x").mkdir(exist_ok=True)
    (project.folder / name).write_text(text)


def read(project, code: str, *patterns: str) -> None:
    """Let the model be made of what `code`, an expression, reads; patterns are declared."""
    project.edit("models/tiny.py", "manual_seed(0)", f"manual_seed(len({code}))")
    model = f"{{entrypoint: models/tiny.py:load, files: {json.dumps(list(patterns))}}}"
    project.edit("tiny.yaml", "{entrypoint: models/tiny.py:load}", model)


def test_a_declared_file_is_built_from(project):
    write(project, f"x/{ODD}")
    read(project, "open(b'x/w\\xff.bin').read()", "x/*")
    assert project(*EXPORT).ran == ["export"]
    assert project(*EXPORT).ran == []
    write(project, f"x/{ODD}", "22")
    assert project(*EXPORT).ran == ["export"]


def test_an_undeclared_file_is_named(project):
    write(project, f"x/{ODD}")
    read(project, "open(b'x/w\\xff.bin').read()")
    done = project(*EXPORT, "--json")
    assert done.code == 5
    reported = [json.loads(line) for line in done.out.splitlines()]
    (failed,) = [each for each in reported if each["type"] == "step_failed"]
    assert failed["what"] == f"'x/{ODD}' is read but not declared (read at models/tiny.py:6)"
    assert failed["fix"].startswith("rename it, since no recipe can hold a name that is not UTF-8")


def test_a_project_in_a_folder_of_such_a_name_builds_into_a_store_elsewhere(project, tmp_path):
    odd = tmp_path / os.fsdecode(b"\xff")
    project.folder.rename(odd)
    project.folder = odd
    refused = project(*EXPORT)
    assert refused.code == 1
    assert (
        r"\xff/artifacts, is not UTF-8: torch and ONNX Runtime open no file there" in refused.err
    )
    done = project(*EXPORT, "--store", str(tmp_path / "store"))
    assert done.code == 0, done.out
