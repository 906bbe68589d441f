"""The command line's projects, and a place for what is written thousands of times."""

import contextlib
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
    with _in_memory(tmp_path) as folder:
        yield folder


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The same for all tests of a module: a store there costs a disk nothing, each time that it is renewed."""
    with _in_memory(tmp_path_factory.mktemp("memory")) as folder:
        yield folder


@contextlib.contextmanager
def _in_memory(otherwise: Path) -> Iterator[Path]:
    if not os.access(MEMORY, os.W_OK):
        yield otherwise
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
