"""What tests/install_servers.sh installs: tests that need it are skipped without it, or fail where it must be there."""

import os
from typing import NoReturn

import pytest

NEEDED = "ONNXBUILD_NEED_SERVERS"
"""A variable: set to 1, a test that misses something fails. `.ci/run` sets it once everything is installed."""


def missing(what: str) -> NoReturn:
    """Skip the test that misses something, or fail it where ONNXBUILD_NEED_SERVERS is 1.

    Args:
        what: What is missing: `node and Chromium`.
    """
    said = f"{what} is not installed: tests/install_servers.sh"
    if os.environ.get(NEEDED) == "1":
        pytest.fail(f"{said} ({NEEDED} is 1)", pytrace=False)
    pytest.skip(said)
