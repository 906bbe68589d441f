"""Steps are kept to their share of the cores, next to each other on others."""

import os
import subprocess
import sys

import pytest

_SCRIPT = """
import os, sys
from onnxbuild.adapters.toolchain.step_environment import Cores
cores = Cores(None if sys.argv[1] == "all" else int(sys.argv[1]))
for number in (0, 1, 2):
    cores.take(number)
    print(*sorted(os.sched_getaffinity(0)), sep=",")
print(os.cpu_count(), file=sys.stderr)
"""


def run(count):
    return subprocess.run(
        [sys.executable, "-c", _SCRIPT, count], capture_output=True, text=True, check=True
    )


def taken(count):
    return run(count).stdout.split()


def test_all_cores_are_all_and_more_than_all_are_no_more():
    every = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    assert taken("all") == [every] * 3
    assert taken("1000") == [every] * 3


@pytest.mark.skipif(len(os.sched_getaffinity(0)) == 1, reason="there is one core")
def test_one_core_each_and_neighbours_have_others():
    first, second, third = taken("1")
    every = sorted(map(str, os.sched_getaffinity(0)), key=int)
    assert [first, second] == every[:2]
    assert third == every[2 % len(every)]


@pytest.mark.parametrize("count", ["1", "1000"])
def test_python_counts_as_many_as_are_given(count):
    assert run(count).stderr.strip() == count
    assert run("all").stderr.strip() == str(os.cpu_count())
