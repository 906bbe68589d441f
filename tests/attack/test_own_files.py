"""Globs next to all that onnxbuild makes itself: they build, are up to date, and stay so."""

import json

import pytest

pytestmark = pytest.mark.slow


def declare(project, *patterns: str) -> None:
    files = json.dumps(list(patterns))
    model = f"{{entrypoint: models/tiny.py:load, files: {files}}}"
    project.edit("tiny.yaml", "{entrypoint: models/tiny.py:load}", model)


@pytest.mark.parametrize(("pattern", "store"), [("**/*.json", ""), (".", "x/y")])
def test_a_glob_that_could_match_the_store_builds_and_is_up_to_date(project, pattern, store):
    project.write("weights/a.json", "{}")
    project.write(".venv/pyvenv.cfg", "")
    declare(project, pattern)
    reported = ["--store", store] if store else []
    arguments = ("run", "tiny.yaml", "--only", "export", *reported)
    first = project(*arguments)
    assert first.code == 0, first.out + first.err
    again = project(*arguments)
    assert "up to date" in again.out
    project.write("weights/b.json", "{}")
    assert project(*arguments).ran == ["export"]
    assert "up to date" in project(*arguments).out


def test_a_declared_file_of_the_store_is_refused_by_a_sentence(project):
    project.write("artifacts/FORMAT", "1")
    (project.folder / "artifacts/cas/sha256").mkdir(parents=True)
    declare(project, "artifacts/out/**")
    seen = project("run", "tiny.yaml", "--only", "export")
    assert seen.code == 2
    assert "artifacts is a store, which holds what is built and no inputs" in seen.err
    assert "fix: " in seen.err
