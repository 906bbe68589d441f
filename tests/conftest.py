"""Two tiers of tests, and the order of the files: those that take long first, so that no worker waits for them.

`make test` runs what is not marked `slow`: the tests of each module, and of those that drive the real
command the few that are marked `smoke`. `make test-all` runs the rest, too.
"""

import compileall
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from onnxbuild import catalog
from tests import fork_servers
from tests.shared_results import SharedResults

hypothesis.settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("untimed")  # a busy machine is no fault of an example

HERE = Path(__file__).parent
BUILDING = {"attack", "cli", "steps", "verification"}
"""Folders of files that build for a minute each."""

os.environ.pop("CI", None)  # tests are laptops; those of CI say so (`remote.push: ci-only`)

LONGEST = (
    "test_readme",
    "test_transformers_build",
    "test_damage",
    "test_other_bundles",
    "test_packages",
    "test_unobserved",
    "test_tensorflow_build",
    "test_invalidation",
    "test_builds",
    "test_every_package",
    "test_real_recipes",
    "test_unseen_reads",
    "test_kill",
    "test_watch",
    "test_make_dist",
    "test_triton_server",
    "test_export",
    "test_diff",
    "test_web",
    "test_pipelines",
    "test_aotinductor",
    "test_delivered_whole",
)
"""Files that take minutes. A file is one worker's: begun late, it would leave the others idle.

test_readme comes first: the others are lent what it builds (tests/shared_results.py).
"""

FAST = "not slow or smoke"
"""What `make test` selects."""

WHOLE = {"attack", "verification"}
"""Folders of files that drive the real command, each time in processes of its own; in cli/ those tests
do that take the fixture `project`, and not `cheap`."""


def pytest_configure(config: pytest.Config) -> None:
    """The program's bytecode, once for all commands.

    Each is a process of its own, and compiles the sources anew, for half a second, where
    PYTHONDONTWRITEBYTECODE is set.
    """
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(HERE.parent / "onnxbuild", quiet=2)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make test` reads no file of which it runs no test."""
    if config.getoption("markexpr") != FAST or not collection_path.name.startswith("test_"):
        return None
    text = collection_path.read_text()
    slow = _room(collection_path) in WHOLE or "\npytestmark = pytest.mark.slow\n" in text
    return True if slow and "smoke" not in text else None


def _room(path: Path) -> str:
    return path.relative_to(HERE).parts[0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tiers; put the longest files first, then whole projects, then what builds.

    Whole projects are next to this file. `--no-loadscope-reorder` keeps to it; else files of one test would come last.
    """
    for item in items:
        room = _room(item.path)
        fixtures = set(getattr(item, "fixturenames", ()))
        real = room == "cli" and "project" in fixtures and "cheap" not in fixtures
        if room in WHOLE or real:
            item.add_marker("slow")
    items.sort(key=_place)


def _place(item: pytest.Item) -> tuple[int, bool, bool]:
    """Sort key: the longest files by name, whole projects, what builds, the rest."""
    name, folder = item.path.stem, item.path.parent
    longest = LONGEST.index(name) if name in LONGEST else len(LONGEST)
    return longest, folder != HERE, folder.name not in BUILDING


@pytest.fixture(autouse=True)
def _no_plugins_left() -> Iterator[None]:
    """What a test brings, or what happens to be installed, is in no other test's schema."""
    yield
    if catalog.plugins():
        catalog.use_plugins(())


@pytest.fixture
def warm_steps() -> Iterator[None]:
    """For tests that build in their process: see tests/fork_servers.py."""
    with fork_servers.warm_steps():
        yield


@pytest.fixture(scope="session")
def shared_results(tmp_path_factory: pytest.TempPathFactory) -> SharedResults:
    """See tests/shared_results.py."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    return SharedResults(folder / "shared results")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Read the files without looking for garbage, and keep their bytecode.

    pytest rewrites each `assert`, which takes as long as all else of a collection: once for all runs, also where
    PYTHONDONTWRITEBYTECODE is set. What the files have imported stays: no later look for garbage,
    of which benchmarks and exports in this process have many, goes over the frameworks again.
    """
    unwritten = sys.dont_write_bytecode
    sys.dont_write_bytecode = False
    gc.disable()
    try:
        return (yield)
    finally:
        sys.dont_write_bytecode = unwritten
        gc.collect()
        gc.freeze()
        gc.enable()
