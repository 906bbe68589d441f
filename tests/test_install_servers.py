"""`make servers` where it can install nothing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SERVERS = ROOT / ".servers"
PROGRAMS = ("bash", "id", "dirname", "grep", "ldconfig", "cmp")
"""What the script runs; neither apt-get nor anything that it installs is among them."""


def test_without_apt_get_it_says_what_is_missing_and_the_tests_go_on(tmp_path):
    if not (SERVERS / "npm").is_dir() or not (SERVERS / "onnxruntime-headers").is_dir():
        pytest.skip("nothing is unpacked yet: make servers")
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    for each in PROGRAMS:
        (tmp_path / each).symlink_to(shutil.which(each, path=path))
    done = subprocess.run(
        ["bash", ROOT / "tests/install_servers.sh", SERVERS],
        env={"PATH": str(tmp_path), "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (
        "missing: docker-registry skopeo nginx slurmctld zsh fish dot chromium node npm"
        in done.stderr
    )
    assert "tests that need them are skipped" in done.stderr


def test_test_all_installs_what_it_needs_first():
    listed = subprocess.run(
        ["make", "--dry-run", "test-all"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    lines = listed.stdout.splitlines()
    (install,) = (n for n, line in enumerate(lines) if "tests/install_servers.sh" in line)
    first_test = next(n for n, line in enumerate(lines) if "-m pytest" in line)
    assert install < first_test
