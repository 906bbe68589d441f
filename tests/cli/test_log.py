"""`onnxbuild log` of a step that printed much."""

from __future__ import annotations

import os
import resource
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
