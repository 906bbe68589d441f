"""Garbage collection of a shared store: what a record that stays needs is never removed."""

import os
import time

import pytest

from onnxbuild.adapters.remote.client import RemoteError
from onnxbuild.adapters.remote.garbage import collect_objects, contents
from onnxbuild.adapters.remote.signed_records import Signer, record_name
from onnxbuild.core.errors import StoreError
from tests.adapters.remote.machines import CI, Machine, closed
from tests.adapters.remote.servers import s3
from tests.adapters.test_store_contract import result

DAY_S = 24 * 3600.0
KEYS = [each * 64 for each in "abc"]


@pytest.fixture(autouse=True)
def _closed():
    yield from closed()


@pytest.fixture
def shared(tmp_path):
    """A folder with three results: two of them have one blob, and all share another."""
    folder = tmp_path / "shared"
    ci = Machine(tmp_path / "ci", folder.as_uri(), builder=CI)
    for key, text in zip(KEYS, ("one", "one", "two" * 1000), strict=True):
        ci.build({"model": text, "common": "common"}, key=key)
    return folder


def name_of(key):
    return record_name(key, Signer(CI).id)


def make_older(folder, days, *names):
    then = time.time() - days * DAY_S
    for name in names or [str(path.relative_to(folder)) for path in folder.rglob("*")]:
        os.utime(folder / name, (then, then))


def collect(folder, tmp_path, *, in_use=(), url="", **options):
    machine = Machine(tmp_path / "cleaner", url or folder.as_uri())
    limits = {"keep_s": 30 * DAY_S, "grace_s": DAY_S, "max_bytes": None, "dry_run": False}
    return collect_objects(machine.client, in_use, now_s=time.time(), **{**limits, **options})


def test_old_results_go_and_blobs_that_others_need_stay(shared, tmp_path):
    make_older(shared, 60)
    make_older(shared, 1.5, name_of(KEYS[0]))
    tried = collect(shared, tmp_path, dry_run=True)
    assert len(list((shared / "ac").iterdir())) == 3
    found = collect(shared, tmp_path)
    assert found == tried
    assert (found.records, found.blobs, found.left_records) == (2, 1, 1)
    assert [path.name for path in (shared / "ac").iterdir()] == [name_of(KEYS[0])[3:]]
    laptop = Machine(tmp_path / "laptop", shared.as_uri())
    assert [each.key for each in laptop.found(KEYS[0])] == [KEYS[0]]
    assert laptop.found(KEYS[1]) == []
    assert sum(path.stat().st_size for path in (shared / "cas").iterdir()) == found.left_bytes


def test_what_is_in_use_stays_at_any_age(shared, tmp_path):
    make_older(shared, 400)
    found = collect(shared, tmp_path, in_use={name_of(KEYS[2])})
    assert (found.records, found.left_records) == (2, 1)
    assert found.left_bytes == found.held_bytes == 3006
    assert len(Machine(tmp_path / "laptop", shared.as_uri()).found(KEYS[2])) == 1


def test_blobs_of_an_upload_that_goes_on_stay(shared, tmp_path):
    for path in (shared / "ac").iterdir():
        path.unlink()
    assert collect(shared, tmp_path).blobs == 0
    make_older(shared, 2)
    assert collect(shared, tmp_path).blobs == 3


def test_the_oldest_go_first_until_the_rest_fits(shared, tmp_path):
    make_older(shared, 20)
    make_older(shared, 10, name_of(KEYS[0]))
    found = collect(shared, tmp_path, max_bytes=100)
    assert (found.records, found.left_records, found.left_bytes) == (1, 2, 9)
    assert collect(shared, tmp_path, max_bytes=1, grace_s=11 * DAY_S).left_bytes == 9


@pytest.mark.parametrize("content", [b"", b"{}\n{}", b"\x08\x02bazel", b"no newline" * 500])
def test_a_record_that_can_not_be_read_may_need_any_blob(shared, tmp_path, content):
    (shared / "ac" / ("f" * 64)).write_bytes(content)
    make_older(shared, 60)
    with pytest.raises(StoreError, match="nothing was removed: ac/ffff"):
        collect(shared, tmp_path)
    assert len(list((shared / "cas").iterdir())) == 3


def test_a_record_under_another_s_name_is_not_believed(shared, tmp_path):
    content = (shared / name_of(KEYS[0])).read_bytes()
    (shared / name_of(KEYS[1])).write_bytes(content)
    with pytest.raises(StoreError, match="its name is that of another record"):
        collect(shared, tmp_path)


@pytest.mark.slow
@pytest.mark.always
def test_an_s3_bucket_is_listed_and_cleaned(tmp_path, monkeypatch):
    with s3(tmp_path / "server") as (url, variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        ci = Machine(tmp_path / "ci", url, builder=CI)
        artifact = ci.build({"model": "one"}, key=KEYS[0])
        ci.build({"model": "two"}, key=KEYS[1])
        held = contents(ci.client)
        assert (len(held.records), len(held.blobs)) == (2, 2)
        found = collect_objects(
            ci.client, {name_of(KEYS[0])}, now_s=time.time() + 60 * DAY_S, keep_s=DAY_S,
            grace_s=DAY_S, max_bytes=None, dry_run=False,
        )  # fmt: skip
        assert (found.records, found.blobs, found.left_records) == (1, 1, 1)
        laptop = Machine(tmp_path / "laptop", url)
        assert laptop.found(KEYS[0]) == [result(artifact, key=KEYS[0])]
        assert laptop.found(KEYS[1]) == []


def test_a_server_that_is_gone_is_an_error(tmp_path):
    machine = Machine(tmp_path / "cleaner", "http://127.0.0.1:9/cache")
    with pytest.raises(RemoteError):
        contents(machine.client)
