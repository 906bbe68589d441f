"""Run tests on the portable path: `pytest -p tests.portable FILES`; `make test-portable` does so with
the files whose tests take another way there.

ONNXBUILD_PORTABLE is set, and what POSIX alone has can't be imported, here and in the commands that tests start
(`tests.fork_servers.command`): steps start in processes of their own, locks are SQLite's, nothing is fenced in by the
kernel. What tests the other way itself is skipped by its name.
"""

import os
import sys

import psutil  # noqa: F401 - before `resource` can't be imported, which it takes on Linux alone
import pytest

from onnxbuild.adapters.portable import VARIABLE
from tests.fork_servers import POSIX_MODULES

FORK_SERVER = "it is of the fork server"
ORPHANS = "only the fork server adopts what leaves a step's process group"
FLOCK = "one side of it is flock"

SKIPPED = {
    "test_what_a_step_leaves_running_apart_from_it_ends_with_it": ORPHANS,
    "test_what_another_running_step_has_started_stays": ORPHANS,
    "test_closing_ends_everything_at_once": ORPHANS,
    "test_closing_ends_what_steps_began_since_it_last_listened": ORPHANS,
    "test_a_fork_server_that_dies_fails_its_steps_and_the_next_step_starts_another": FORK_SERVER,
    "test_a_portable_process_and_another_keep_each_other_out": FLOCK,
    "test_a_process_is_kept_out_by_a_portable_one": FLOCK,
}
"""Names of tests that are skipped here -> why: each is of a mechanism that the portable path does without.

Those of Landlock and of seccomp skip themselves, as on a kernel that lacks them.
"""

ENOUGH = {
    "test_executor.py": (
        "test_a_step_that_takes_too_long_is_stopped_and_says_so",
        "test_all_that_a_step_prints_is_in_its_log_and_its_end_is_reported",
        "test_a_step_sees_clean_surroundings",
        "test_what_a_step_leaves_running_in_its_group_ends_with_it",
        *SKIPPED,
    )
}
"""File -> what is run of it. Each step loads torch anew, for three seconds; `ONNXBUILD_EVERY=1` runs all."""


def pytest_configure() -> None:
    """Take the portable path from now on, before anything asks which one it is."""
    os.environ[VARIABLE] = "1"
    for name in POSIX_MODULES:
        sys.modules[name] = None  # type: ignore[assignment]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what tests the other way; of the files that take long run enough."""
    if not os.environ.get("ONNXBUILD_EVERY"):
        left_out = [
            each for each in items if each.name not in ENOUGH.get(each.path.name, each.name)
        ]
        items[:] = [each for each in items if each not in left_out]
        config.hook.pytest_deselected(items=left_out)
    for item in items:
        name = item.name.partition("[")[0]
        if name in SKIPPED:
            item.add_marker(pytest.mark.skip(reason=SKIPPED[name]))
