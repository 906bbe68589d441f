"""What CI runs of the slow tests."""

import json
import subprocess
import sys
import textwrap

import pytest

from tests import sample
from tests.sample import SECONDS, Change, Distances, choose, file_of

TESTS = [
    f"tests/room{file % 7}/test_{file}.py::test_{number}"
    for file in range(60)
    for number in range(5)
]
GUARANTEES = {TESTS[0], TESTS[17]}


def chosen(commits, *, distance=lambda _: None, seconds=()):
    return choose(TESTS, GUARANTEES, Change(commits), distance, dict(seconds))


def test_four_commits_in_a_row_run_every_test_and_each_runs_the_guarantees():
    for first in (0, 1, 1688):
        choices = [chosen(first + each) for each in range(4)]
        assert set().union(*(each.chosen for each in choices)) == set(TESTS)
        assert all(set(each.always) == GUARANTEES for each in choices)
        assert all(len(each.chosen) < len(TESTS) / 2 for each in choices)


def test_every_test_is_chosen_or_left():
    choice = chosen(3, distance=lambda file: 1 if "room1" in file else None)
    assert sorted([*choice.always, *choice.quarter, *choice.near, *choice.left]) == sorted(TESTS)
    assert choice.near
    assert all("room1" in test for test in choice.near)


def test_of_what_is_near_the_nearest_run_until_their_time_is_up():
    distances = {file_of(test): index % 3 for index, test in enumerate(TESTS[::5])}
    choice = chosen(0, distance=distances.get, seconds=dict.fromkeys(distances, 50.0))
    assert len(choice.near) * 10.0 <= sample.NEAR_S
    skipped = {file_of(test) for test in choice.left}
    assert {distances[file_of(test)] for test in choice.near} == {0}
    assert {1, 2} <= {distances[file] for file in skipped}


def test_a_change_in_a_room_is_near_to_the_tests_that_use_it():
    store = Distances({"onnxbuild/adapters/store/disk_store.py"})
    assert store("tests/adapters/store/test_disk_store.py") == 1
    assert store("tests/attack/test_damage.py") == 1
    assert store("tests/onnxkit/wordpiece/test_graph.py") is None
    assert Distances({"tests/attack/tiny.py"})("tests/attack/test_damage.py") == 0
    assert Distances({"docs/trust.md"})("tests/attack/test_damage.py") is None


def test_a_changed_template_is_near_to_the_tests_of_what_reads_it():
    near = Distances(
        {"onnxbuild/onnxkit/cpp/templates/main.cpp.j2", "onnxbuild/onnxkit/cpp/model.h.j2"}
    )
    assert near("tests/onnxkit/cpp/test_any.py") == 1


def test_the_seconds_are_of_files_that_are_there_and_the_quarters_take_equally_long():
    files = json.loads(SECONDS.read_text())
    assert [file for file in files if not (sample.ROOT / file).exists()] == []
    quarters = [0.0] * sample.QUARTERS
    for file, quarter in sample.quarters(files).items():
        quarters[quarter] += files[file]
    assert max(quarters) < 1.05 * min(quarters)


@pytest.mark.slow
def test_a_test_that_fails_once_is_flaky_and_one_that_fails_twice_fails(tmp_path):
    (tmp_path / "tests").mkdir()
    for name in ("__init__.py", "sample.py"):
        (tmp_path / "tests" / name).write_text((sample.ROOT / "tests" / name).read_text())
    (tmp_path / "tests/slow_seconds.json").write_text("{}")
    (tmp_path / "onnxbuild").mkdir()
    (tmp_path / "onnxbuild/__init__.py").touch()
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\nmarkers = ["slow: ", "smoke: ", "sampled: ", "always: "]\n'
    )
    tests = tmp_path / "tests/test_these.py"
    once = """
        from pathlib import Path
        import pytest
        pytestmark = [pytest.mark.slow, pytest.mark.always]

        def test_once():
            seen = Path("seen")
            was = seen.exists()
            seen.touch()
            assert was

        def test_well():
            pass
    """
    tests.write_text(textwrap.dedent(once))

    def run():
        command = [sys.executable, "-m", "tests.sample"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    code, text = run()
    assert code == 0, text
    assert (
        "flaky: tests/test_these.py::test_once failed, and passed when it was run again alone"
        in text
    )
    assert "2 guarantees" in text

    tests.write_text(tests.read_text() + "\ndef test_never():\n    assert False\n")
    code, text = run()
    assert code == 1
    assert "failed twice: tests/test_these.py::test_never" in text
    assert "flaky" not in text
