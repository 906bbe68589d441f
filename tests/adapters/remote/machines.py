"""Machines that share a remote store: each has a store of its own."""

import os
from functools import partial

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.remote.client import Client
from onnxbuild.adapters.remote.opening import open_remote
from onnxbuild.adapters.remote.signed_records import Signer
from onnxbuild.adapters.remote.tiered_store import TieredStore
from onnxbuild.adapters.remote.uploads import Uploads
from onnxbuild.adapters.store.disk_store import DiskStore
from tests.adapters.test_store_contract import KEY, outputs_of, result

CI, OTHER, STRANGER = (Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (1, 2, 3))
WEIGHTS = "weights" * 10_000
_OPEN = []


def closed():
    """Close all machines at the end of a test; for a fixture."""
    yield
    for each in [*_OPEN]:
        each.close()


class Machine:
    """One machine: a store of its own, and the remote."""

    def __init__(self, folder, url, *, builder=None, trusted=(CI,), agree=1, fetch="all"):
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.disk = DiskStore(folder / "store", StatCache(Index(folder / "index.db")))
        self.disk.prepare()
        opened = open_remote(url, dict(os.environ), allow_http=False, where="")
        self.client = Client(opened, grace_s=0.5)
        self.uploads = None
        if builder is not None:
            self.uploads = Uploads(self.disk, self.client, Signer(builder))
        keys = {Signer(each).id: each.public_key() for each in trusted}
        self._open = partial(
            TieredStore,
            self.disk,
            self.client,
            keys,
            agree=agree,
            uploads=self.uploads,
            look_only=fetch == "nothing",
        )
        self._fetches_all = fetch == "all"
        self.next_run()
        _OPEN.append(self)

    def next_run(self):
        """Forget what a process knows."""
        self.store = self._open()

    def close(self):
        _OPEN.remove(self)
        if self.uploads is not None:
            self.uploads.close()
        self.client.close()

    def build(self, text=WEIGHTS, *, key=KEY, wait=True):
        files = text if isinstance(text, dict) else {"model": text}
        artifact = self.store.ingest(outputs_of(self.folder, **files), "onnx-model")
        self.store.record(result(artifact, key=key))
        if wait:
            self.uploads.wait()
        return artifact

    def found(self, key=KEY):
        """Results whose blobs are here after all was fetched that may be."""
        results = list(self.store.lookup(key))
        if self._fetches_all:
            self.store.bring([a for each in results for a in each.outputs.values()])
        return [
            each
            for each in results
            if not any(self.store.faults(artifact) for artifact in each.outputs.values())
        ]
