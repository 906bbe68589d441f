"""`make test` reads fewer files than there are, and misses none of its tests."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import FAST

ROOT = Path(__file__).parents[1]


def collected(expression: str, *folders: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", expression, *folders],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_the_makefile_selects_what_is_left_out_by_file_too():
    assert f'-m "{FAST}"' in (ROOT / "Makefile").read_text()


@pytest.mark.slow
def test_no_test_is_lost_with_the_files_that_are_not_read():
    folders = ("tests/attack", "tests/verification", "tests/features/frontends")
    found = collected(FAST, *folders)
    assert found == collected(f"({FAST})", *folders)  # the same, and every file is read
    assert any(line.startswith("tests/attack/") for line in found)
