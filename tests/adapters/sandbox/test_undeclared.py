"""Undeclared files are named in one message: all that are known, and the line to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnxbuild.adapters.sandbox.undeclared import RefusedStep, undeclared_files


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
