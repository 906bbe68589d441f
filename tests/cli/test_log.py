"""`onnxbuild log` of a step that printed much."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys

import pytest

LOG_BYTES, MEMORY_BYTES = 700 << 20, 600 << 20


@pytest.mark.slow
def test_a_log_that_is_larger_than_the_memory_is_shown(cheap):
    assert cheap.run("--only", "export").code == 0
    (log,) = (cheap.folder / "artifacts/runs").glob("*/logs/tiny+export.log")
    os.truncate(log, LOG_BYTES)  # sparse: takes no room
    with log.open("ab") as file:
        file.write(b"the end\n")
    limit = (MEMORY_BYTES, MEMORY_BYTES)
    with subprocess.Popen(
        [sys.executable, "-m", "onnxbuild", "log", "tiny:export"],
        cwd=cheap.folder,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit),  # noqa: PLW1509 - no thread runs
    ) as shown:
        assert shown.stdout is not None
        count, last = 0, b""
        while chunk := shown.stdout.read(1 << 20):
            count, last = count + len(chunk), (last + chunk)[-8:]
    assert (shown.returncode, count, last) == (0, LOG_BYTES + 8, b"the end\n")


def test_a_log_that_is_gone_has_the_command_that_makes_it_again(cheap):
    never = cheap("log", "tiny:export")
    assert "it has not run here\n  fix: onnxbuild run tiny.yaml\n" in never.err
    assert cheap.run().code == 0
    shutil.rmtree(cheap.folder / "artifacts/runs")
    gone = cheap("log", "tiny:export")
    assert (gone.code, "no log of tiny:export any more" in gone.err) == (2, True)
    (fix,) = (line.split("onnxbuild ")[1] for line in gone.err.splitlines() if "fix:" in line)
    assert cheap(*fix.split()).code == 0
    assert cheap("log", "tiny:export").code == 0
