"""A disk store with a remote behind it: what comes is right, whatever the server does."""

from __future__ import annotations

import time

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.remote.client import Client, blob_name
from onnxbuild.adapters.remote.opening import open_remote
from onnxbuild.adapters.remote.signed_records import Signer, record_name
from onnxbuild.adapters.remote.tiered_store import TieredStore
from onnxbuild.adapters.remote.uploads import Uploads
from onnxbuild.adapters.store.disk_store import DiskStore
from tests.adapters.remote.http_store import serving
from tests.adapters.test_store_contract import KEY, outputs_of, result

CI, OTHER, STRANGER = (Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (1, 2, 3))
WEIGHTS = "weights" * 10_000


@pytest.fixture
def server():
    with serving() as store:
        yield store


@pytest.fixture(autouse=True)
def _closed():
    yield
    while MACHINES:
        MACHINES.pop().close()


MACHINES = []


class Machine:
    """One machine: a store of its own, and the remote."""

    def __init__(self, folder, url, *, builder=None, trusted=(CI,), agree=1, fetch=True):
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.disk = DiskStore(folder / "store", StatCache(Index(folder / "index.db")))
        self.disk.prepare()
        self.client = Client(open_remote(url, {}, allow_http=False, where=""), grace_s=0.5)
        self.uploads = None
        if builder is not None:
            self.uploads = Uploads(self.disk, self.client, Signer(builder))
        keys = {Signer(each).id: each.public_key() for each in trusted}
        self.store = TieredStore(
            self.disk, self.client, keys, agree=agree, uploads=self.uploads, fetch=fetch
        )
        MACHINES.append(self)

    def close(self):
        if self.uploads is not None:
            self.uploads.close()
        self.client.close()

    def build(self, text=WEIGHTS):
        artifact = self.store.ingest(outputs_of(self.folder, model=text), "onnx-model")
        self.store.record(result(artifact))
        self.uploads.wait()
        return artifact

    def found(self):
        """Results whose blobs are here after all was fetched that can be."""
        return [
            each
            for each in self.store.lookup(KEY)
            if not any(self.store.faults(artifact) for artifact in each.outputs.values())
        ]


@pytest.mark.parametrize("kind", ["http", "file"])
def test_what_one_machine_built_another_one_finds_and_keeps(server, tmp_path, kind):
    url = server.url if kind == "http" else (tmp_path / "shared").as_uri()
    artifact = Machine(tmp_path / "ci", url, builder=CI).build()
    laptop = Machine(tmp_path / "laptop", url)
    assert laptop.found() == [result(artifact)]
    assert laptop.store.paths(artifact)["model"].read_text() == WEIGHTS
    assert laptop.disk.lookup(KEY) == (result(artifact),)
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
    laptop = Machine(tmp_path / "laptop", server.url, fetch=False)
    assert len(laptop.found()) == 1
    assert not any("/cas/" in path for method, path in server.requests if method == "GET")
    assert laptop.disk.lookup(KEY) == ()


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
    Machine(tmp_path / "ci", server.url, builder=CI).build("weights" * 700_000)  # 5 MB
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
        assert laptop.store.lookup(f"{n}" * 64) == ()
    assert laptop.client.lost == "Connection refused"


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
