"""A disk store with a remote behind it: what comes is right, whatever the server does."""

import time

import pytest

from onnxbuild.adapters.remote.client import blob_name
from onnxbuild.adapters.remote.signed_records import Signer, record_name
from onnxbuild.core.errors import StoreError
from tests.adapters.remote.http_store import serving
from tests.adapters.remote.machines import CI, OTHER, STRANGER, WEIGHTS, Machine, closed
from tests.adapters.test_store_contract import KEY, outputs_of, result


@pytest.fixture
def server():
    with serving() as store:
        yield store


@pytest.fixture(autouse=True)
def _closed():
    yield from closed()


@pytest.mark.parametrize("kind", ["http", "file"])
def test_what_one_machine_built_another_one_finds_and_keeps(server, tmp_path, kind):
    url = server.url if kind == "http" else (tmp_path / "shared").as_uri()
    artifact = Machine(tmp_path / "ci", url, builder=CI).build()
    laptop = Machine(tmp_path / "laptop", url)
    assert laptop.found() == [result(artifact)]
    assert laptop.store.paths(artifact)["model"].read_text() == WEIGHTS
    assert laptop.disk.lookup(KEY) == (result(artifact),)
    assert laptop.disk.lookup(KEY)[0].fetched
    assert laptop.store.hits == 1


def test_a_blob_is_uploaded_once(server, tmp_path):
    ci = Machine(tmp_path / "ci", server.url, builder=CI)
    ci.build()
    ci.build()
    Machine(tmp_path / "other", server.url, builder=OTHER).build()
    puts = [path for method, path in server.requests if method == "PUT"]
    assert len([path for path in puts if "/cas/" in path]) == 1


def test_a_plan_asks_for_blobs_and_fetches_none(server, tmp_path):
    Machine(tmp_path / "ci", server.url, builder=CI).build()
    laptop = Machine(tmp_path / "laptop", server.url, fetch="nothing")
    assert len(laptop.found()) == 1
    assert not any("/cas/" in path for method, path in server.requests if method == "GET")
    assert laptop.disk.lookup(KEY) == ()


def gets_of_blobs(server):
    return [path for method, path in server.requests if method == "GET" and "/cas/" in path]


def test_a_lazy_build_fetches_a_blob_when_somebody_opens_it(server, tmp_path):
    artifact = Machine(tmp_path / "ci", server.url, builder=CI).build()
    laptop = Machine(tmp_path / "laptop", server.url, fetch="needed")
    assert laptop.found() == [result(artifact)]
    assert laptop.disk.lookup(KEY) == (result(artifact),)
    assert gets_of_blobs(server) == []
    again = Machine(tmp_path / "laptop", "http://127.0.0.1:9/cache", fetch="needed")
    assert again.found() == [result(artifact)], "nothing has to be asked"
    assert laptop.store.paths(artifact)["model"].read_text() == WEIGHTS
    assert len(gets_of_blobs(server)) == 1
    assert laptop.store.faults(artifact, by_content=True) == ()
    assert again.store.faults(artifact, by_content=True) == ()
    lost = Machine(tmp_path / "other", server.url, fetch="needed")
    assert len(lost.found()) == 1
    server.objects.clear()
    assert lost.store.faults(artifact, by_content=True) == ("model is missing from the store",)


def test_a_blob_that_can_not_be_brought_is_missing_from_then_on(server, tmp_path):
    artifact = Machine(tmp_path / "ci", server.url, builder=CI).build()
    other = Machine(tmp_path / "ci2", server.url, builder=CI).build("other", key="b" * 64)
    del server.objects[f"/cache/{blob_name(artifact.files[0][1].sha256)}"]
    laptop = Machine(tmp_path / "laptop", server.url, fetch="needed")
    assert len(laptop.found()) == 1
    assert not laptop.store.bring([artifact, other])
    assert laptop.found() == []
    assert len(laptop.found("b" * 64)) == 1
    assert laptop.store.bring([artifact, other]), "it was said once"
    with pytest.raises(StoreError, match="can't be fetched"):
        Machine(tmp_path / "third", server.url, fetch="needed").store.paths(artifact)


def test_a_faulty_blob_does_not_spoil_the_others(server, tmp_path):
    ci = Machine(tmp_path / "ci", server.url, builder=CI)
    made = [ci.build(f"{n}" * 1000, key=f"{n}" * 64) for n in range(9)]
    server.objects[f"/cache/{blob_name(made[8].files[0][1].sha256)}"] = b"8" * 999 + b"9"
    laptop = Machine(tmp_path / "laptop", server.url, fetch="needed")
    assert not laptop.store.bring(made)
    assert [bool(laptop.disk.faults(each)) for each in made] == [False] * 8 + [True]


@pytest.mark.parametrize("fault", ["500", "hang", "slow", "cut", "flip", "longer"])
def test_a_faulty_server_costs_seconds_and_gives_nothing_wrong(server, tmp_path, fault):
    Machine(tmp_path / "ci", server.url, builder=CI).build()
    server.fault = fault
    laptop = Machine(tmp_path / "laptop", server.url)
    began = time.monotonic()
    assert laptop.found() == []
    assert time.monotonic() - began < 10
    assert list((laptop.disk.root / "tmp").iterdir()) == []
    own = laptop.store.ingest(outputs_of(tmp_path, model="own"), "onnx-model")
    laptop.store.record(result(own))
    assert laptop.found() == [result(own)]


def test_a_large_blob_may_take_longer_than_the_first_seconds_while_bytes_arrive(server, tmp_path):
    Machine(tmp_path / "ci", server.url, builder=CI).build("weights" * 1_000_000)  # 7 MB
    server.fault = "steady"
    laptop = Machine(tmp_path / "laptop", server.url)  # waits half a second at first
    assert len(laptop.found()) == 1
    assert laptop.client.lost == ""


def test_a_run_ends_although_an_upload_hangs(server, tmp_path):
    server.hang_puts = True
    ci = Machine(tmp_path / "ci", server.url, builder=CI)
    artifact = ci.store.ingest(outputs_of(ci.folder, model=WEIGHTS), "onnx-model")
    ci.store.record(result(artifact))
    while not any(method == "PUT" for method, _ in server.requests):
        time.sleep(0.01)
    began = time.monotonic()
    ci.uploads.close()
    assert time.monotonic() - began < 5
    assert ci.uploads.left()[0] == 1


def test_a_server_that_is_not_there_is_asked_three_times(tmp_path):
    laptop = Machine(tmp_path / "laptop", "http://127.0.0.1:9/cache")
    for n in range(5):
        assert list(laptop.store.lookup(f"{n}" * 64)) == []
    assert laptop.client.lost == "Connection refused"


def test_records_that_are_expected_are_asked_for_together(server, tmp_path):
    ci = Machine(tmp_path / "ci", server.url, builder=CI)
    keys = [f"{n:064x}" for n in range(40)]
    made = [ci.build(f"{n}", key=key, wait=False) for n, key in enumerate(keys)]
    ci.uploads.wait()
    server.round_trip_s = 0.05
    laptop = Machine(tmp_path / "laptop", server.url)
    began_s = time.monotonic()
    laptop.store.expect(keys)
    assert time.monotonic() - began_s < 40 * 0.05 / 2
    before = len(server.requests)
    assert [list(laptop.store.lookup(key)) for key in keys] == [
        [result(artifact, key=key)] for artifact, key in zip(made, keys, strict=True)
    ]
    assert len(server.requests) == before


def test_a_server_is_not_asked_for_what_a_hit_here_answers(server, tmp_path):
    laptop = Machine(tmp_path / "laptop", server.url)
    own = laptop.store.ingest(outputs_of(tmp_path, model="own"), "onnx-model")
    laptop.store.record(result(own))
    laptop.store.expect([KEY])
    assert next(laptop.store.lookup(KEY)) == result(own)
    assert server.requests == []


def test_many_slow_answers_are_worth_waiting_for(server, tmp_path):
    ci = Machine(tmp_path / "ci", server.url, builder=CI)
    keys = [f"{n:064x}" for n in range(64)]
    for key in keys:
        ci.build(key, key=key, wait=False)
    ci.uploads.wait()
    server.round_trip_s = 0.2
    laptop = Machine(
        tmp_path / "laptop", server.url
    )  # waits half a second for a server that gives nothing
    laptop.store.expect(keys)
    assert [len(list(laptop.store.lookup(key))) for key in keys] == [1] * 64
    assert laptop.client.lost == ""


def test_records_that_can_not_be_read_spoil_no_others(server, tmp_path):
    ci = Machine(tmp_path / "ci", server.url, builder=CI)
    keys = [f"{n:064x}" for n in range(6)]
    for key in keys:
        ci.build(key, key=key, wait=False)
    ci.uploads.wait()
    server.objects[f"/cache/{record_name(keys[2], Signer(CI).id)}"] = b"x" * (17 << 20)
    laptop = Machine(tmp_path / "laptop", server.url)
    laptop.store.expect(keys)
    assert [len(list(laptop.store.lookup(key))) for key in keys] == [1, 1, 0, 1, 1, 1]
    assert laptop.client.lost == ""


def test_swapped_forged_and_unsigned_records_are_ignored(server, tmp_path):
    Machine(tmp_path / "ci", server.url, builder=CI).build()
    name = f"/cache/{record_name(KEY, Signer(CI).id)}"
    forger = Machine(tmp_path / "forger", server.url, builder=STRANGER)
    forger.build("forged")
    sound = server.objects[name]
    forged = server.objects[f"/cache/{record_name(KEY, Signer(STRANGER).id)}"]
    other_key = Signer(CI).record(
        result(next(iter(forger.found()[0].outputs.values())), key="b" * 64)
    )
    for n, content in enumerate(
        (forged, other_key[1], sound.partition(b"\n")[2], sound[:-9], b"", b"{}\n", b"\xff\n{}")
    ):
        server.objects[name] = content
        laptop = Machine(tmp_path / f"laptop-{n}", server.url)
        assert laptop.found() == []
        assert len(laptop.store.ignored) == 1


def test_results_count_where_enough_builders_agree(server, tmp_path):
    Machine(tmp_path / "ci", server.url, builder=CI).build()
    both = {"trusted": (CI, OTHER), "agree": 2}
    assert Machine(tmp_path / "one", server.url, **both).found() == []
    Machine(tmp_path / "other", server.url, builder=OTHER).build("something else")
    assert Machine(tmp_path / "two", server.url, **both).found() == []
    Machine(tmp_path / "again", server.url, builder=OTHER).build()
    assert len(Machine(tmp_path / "three", server.url, **both).found()) == 1


def test_one_upload_that_is_always_refused_holds_up_no_other(server, tmp_path):
    ci = Machine(tmp_path / "ci", server.url, builder=CI)
    server.refused = record_name(KEY, Signer(CI).id)
    ci.build(wait=False)
    for n in range(9):
        ci.build(f"{n}" * 9, key=f"{n}" * 64, wait=False)
    said = []
    ci.uploads.wait(lambda count, size: said.append((count, size)), every_s=60)
    assert said == [], "no line for each result"
    assert ci.uploads.sent == 9
    assert ci.uploads.left() == (1, 0)
    assert ci.uploads.failed == "it answers 507 Insufficient Storage"


def test_what_could_not_be_uploaded_is_uploaded_by_the_next_run(server, tmp_path):
    server.refuse_puts = True
    ci = Machine(tmp_path / "ci", server.url, builder=CI)
    artifact = ci.build()
    assert ci.uploads.failed
    assert ci.uploads.left() == (1, len(WEIGHTS))
    ci.uploads.close()
    server.refuse_puts = False
    ci = Machine(tmp_path / "ci", server.url, builder=CI)
    ci.uploads.resume()
    ci.uploads.wait()
    assert ci.uploads.left() == (0, 0)
    assert f"/cache/{blob_name(artifact.files[0][1].sha256)}" in server.objects
    assert Machine(tmp_path / "laptop", server.url).found() == [result(artifact)]
