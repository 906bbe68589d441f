import json
import os

from onnxbuild.onnxkit.host import describe_host, usable_cores


def test_a_host_is_described_in_plain_json():
    told = describe_host()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["cpu"]
    assert 0 <= told["busy_percent"] <= 100
    assert told["cores"] == usable_cores()


def test_usable_cores_are_no_more_than_there_are():
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)
