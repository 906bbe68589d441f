"""Random programs keep the law: an incremental build equals a clean one (see tests/attack/law)."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.attack.law.carriers import CARRIERS
from tests.attack.law.draw import GROUPS, draw, makers

PROGRAMS = "2"
"""`make test-rest` runs the law itself, on 200."""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.attack.law", *arguments],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )


def test_random_programs_keep_the_law():
    done = run("--seed", "1", "--programs", PROGRAMS)

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_program_that_leans_on_a_time_violates_the_law_and_is_shrunk():
    # docs/trust.md: times are not covered. A law that finds nothing here would find nothing.
    done = run("--groups", "stat", "--matrix", "--match", "stat, mtime", "--length", "2")

    assert done.returncode == 1, done.stderr
    assert "stale after change project/models/d10/there.txt" in done.stdout
    assert "replay: python -m tests.attack.law --seed 9 --matrix" in done.stdout


@pytest.mark.smoke
def test_a_seed_draws_the_same_program_each_time():
    assert draw(7) == draw(7)
    assert draw(7) != draw(8)


def test_two_hundred_programs_have_pieces_of_every_group_and_every_carrier():
    parts = [part for seed in range(200) for part in draw(seed).parts]

    assert {part.carrier for part in parts} == set(CARRIERS)
    drawn = {part.piece.name for part in parts}
    for group, known in makers(GROUPS).items():
        assert drawn & set(known), group
