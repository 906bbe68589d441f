import json
import subprocess
import sys
from pathlib import Path

import pytest

from onnxbuild.adapters import machine
from onnxbuild.host.measured import cpu, quota_cores, usable_cores
from onnxbuild.onnxkit.host.host import describe_host


def test_a_host_is_described_in_plain_json():
    reported = describe_host()
    assert json.loads(json.dumps(reported, allow_nan=False)) == reported
    assert reported["cpu"] == cpu()[0]
    assert 0 <= reported["busy_percent"] <= 100
    assert reported["cores"] == usable_cores()


@pytest.mark.parametrize(
    ("cpu_max", "cores"), [("max 100000\n", 0), ("200000 100000\n", 2), ("50000 100000\n", 1)]
)
def test_a_control_groups_quota_counts_in_whole_cores(cpu_max, cores):
    assert quota_cores(cpu_max) == cores


def test_keys_and_measurements_mean_the_same_machine():
    assert machine.host_class()["cores"] == str(usable_cores())
    assert machine.host_class()["cpu"] == describe_host()["cpu"]
    assert machine.host_facts().cpu_flags == cpu()[1]


def test_what_every_run_loads_brings_no_package_along():
    script = (
        "import sys; import onnxbuild.onnxkit.host.host; "
        "print(*{'psutil', 'platform', 'numpy', 'pathlib'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script], cwd=Path(__file__).parents[3],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == ""
