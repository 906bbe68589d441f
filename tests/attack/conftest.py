"""The command line's projects, and a place for what is written thousands of times."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attack import cheap
from tests.cli.conftest import project  # noqa: F401 - a fixture

MEMORY = Path("/dev/shm")


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, where there is such a thing."""
    if not os.access(MEMORY, os.W_OK):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(dir=MEMORY))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def server() -> Iterator[cheap.Server]:
    """Builds cheap worlds."""
    started = cheap.Server()
    yield started
    started.close()
