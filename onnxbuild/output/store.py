"""The JSON that the verbs of `cache` print with `--json`; sizes are in bytes."""

from typing import Literal, TypedDict


class HeldBelowRecord(TypedDict):
    """A store below, which is only read.

    Attributes:
        store: Its folder.
        results: How many results it holds.
        blobs: How many files.
        blob_bytes: Their size.
        trouble: Why it is not used; empty if it is.
    """

    store: str
    results: int
    blobs: int
    blob_bytes: int
    trouble: str


class StatsRecord(TypedDict):
    """Output of `cache stats`; sizes are in bytes.

    Attributes:
        type: `cache stats`.
        store: Its folder.
        below: The stores below, which are only read.
        results: How many results it holds.
        blobs: How many files.
        blob_bytes: Their size.
        bytes_by_kind: Kind of artifact -> size.
        bytes_by_recipe: Recipe -> size; the empty name is what earlier builds left.
        unreferenced_bytes: Of files that no result needs.
        pinned_bytes: Name of a pin -> size.
        views_bytes: Of out/.
        environments: How many environments all projects have.
        environment_bytes: Their size.
        runs: How many runs have logs.
        runs_bytes: Their size.
        index_bytes: Of index.db.
        index_rows: What is in it -> how many.
        quarantine_bytes: Of damaged files that were set aside.
        hit_rate: Share of the steps of the last runs whose result was there; null without any.
        hit_rate_runs: How many runs that is of.
        reused: Steps of them that were there.
        built: Steps of them that ran.
        failed: Steps of them that failed.
    """

    type: Literal["cache stats"]
    store: str
    below: list[HeldBelowRecord]
    results: int
    blobs: int
    blob_bytes: int
    bytes_by_kind: dict[str, int]
    bytes_by_recipe: dict[str, int]
    unreferenced_bytes: int
    pinned_bytes: dict[str, int]
    views_bytes: int
    environments: int
    environment_bytes: int
    runs: int
    runs_bytes: int
    index_bytes: int
    index_rows: dict[str, int]
    quarantine_bytes: int
    hit_rate: float | None
    hit_rate_runs: int
    reused: int
    built: int
    failed: int


class RemoteStatsRecord(TypedDict):
    """Output of `cache stats --remote`; sizes are in bytes.

    Attributes:
        type: `cache stats`.
        remote: Its URL.
        steps: Number of steps of the project's recipes whose results are known.
        there: How many of these results the remote store holds, signed by a builder that is trusted.
        results: How many it holds of all projects; null where the server lists nothing.
        blobs: How many files; null likewise.
        blob_bytes: Their size; null likewise.
    """

    type: Literal["cache stats"]
    remote: str
    steps: int
    there: int
    results: int | None
    blobs: int | None
    blob_bytes: int | None


class RemoteGarbageRecord(TypedDict):
    """Output of `cache gc --remote`; sizes are in bytes.

    Attributes:
        type: `cache gc`.
        remote: Its URL.
        dry_run: Whether nothing was removed, and all this would be.
        results: How many results were removed.
        blobs: How many files.
        bytes: The size of all that.
        left_results: How many results are left.
        left_bytes: Size of the files that are left.
        held_bytes: Of those, ones that are in use or too young.
    """

    type: Literal["cache gc"]
    remote: str
    dry_run: bool
    results: int
    blobs: int
    bytes: int
    left_results: int
    left_bytes: int
    held_bytes: int


class PinRecord(TypedDict):
    """Results that stay at any age.

    Attributes:
        name: The pin's.
        results: How many it keeps.
        gone: How many of them are gone.
    """

    name: str
    results: int
    gone: int


class PinsRecord(TypedDict):
    """Output of `cache pins`.

    Attributes:
        type: `cache pins`.
        pins: All pins.
    """

    type: Literal["cache pins"]
    pins: list[PinRecord]


class UnpinnedRecord(TypedDict):
    """Output of `cache unpin`.

    Attributes:
        type: `cache unpin`.
        name: The pin that was removed.
    """

    type: Literal["cache unpin"]
    name: str


class UploadedRecord(TypedDict):
    """Output of `cache push`.

    Attributes:
        type: `cache push`.
        uploaded: Number of results that were uploaded.
        uploaded_bytes: Size of their blobs that the remote store did not have.
        left: Number of results that are still to be uploaded.
        why: Why they are left; empty where none is.
    """

    type: Literal["cache push"]
    uploaded: int
    uploaded_bytes: int
    left: int
    why: str


class FetchedRecord(TypedDict):
    """Output of `cache pull`.

    Attributes:
        type: `cache pull`.
        steps: Number of steps of the recipes.
        up_to_date: How many of them need not run.
        remarks: A sentence for what came from the remote store, and for what it refused.
    """

    type: Literal["cache pull"]
    steps: int
    up_to_date: int
    remarks: list[str]


class StoreCheckRecord(TypedDict):
    """Output of `cache verify`.

    Attributes:
        type: `cache verify`.
        ok: Whether nothing is damaged.
        files: How many files were read.
        damaged: A sentence for each that is; one of a store below begins with its folder.
        repaired: Whether those of the store itself were set aside, so that the next run rebuilds them.
    """

    type: Literal["cache verify"]
    ok: bool
    files: int
    damaged: list[str]
    repaired: bool


class RemovedEnvironment(TypedDict):
    """An environment that was removed.

    Attributes:
        requirements: What it was made of.
        runtime: Its ONNX Runtime; empty where it had none.
        bytes: Its size.
        idle_s: Time since any project last used it.
    """

    requirements: str
    runtime: str
    bytes: int
    idle_s: float


class KeptEnvironment(TypedDict):
    """An environment that stays.

    Attributes:
        requirements: What it was made of.
        runtime: Its ONNX Runtime; empty where it has none.
        bytes: Its size.
        idle_s: Time since any project last used it.
        why: `recent`: used within `--environment-days`; `busy`: by a build that is running; `refused`: the
            system does not let you remove it.
    """

    requirements: str
    runtime: str
    bytes: int
    idle_s: float
    why: Literal["recent", "busy", "refused"]


class GarbageRecord(TypedDict):
    """Output of `cache gc`; sizes are in bytes.

    Attributes:
        type: `cache gc`.
        dry_run: Whether nothing was removed, and all this would be.
        results: How many results were removed.
        blobs: How many files.
        runs: Logs of how many runs.
        bytes: The size of all that.
        left_bytes: Size of the files that are left.
        held_bytes: Of those, pinned ones and ones that are too young.
        environments: What else was removed, of what all projects share.
        kept_environments: What of that was kept.
    """

    type: Literal["cache gc"]
    dry_run: bool
    results: int
    blobs: int
    runs: int
    bytes: int
    left_bytes: int
    held_bytes: int
    environments: list[RemovedEnvironment]
    kept_environments: list[KeptEnvironment]


class CleanedFolder(TypedDict):
    """A folder of out/ that was left over.

    Attributes:
        folder: Its path.
        why: Why it was left over.
        bytes: Size of onnxbuild's own files in it.
        kept: Files that stay: onnxbuild did not make them, or they were changed since.
    """

    folder: str
    why: str
    bytes: int
    kept: list[str]


class CleanRecord(TypedDict):
    """Output of `clean`.

    Attributes:
        type: `clean`.
        dry_run: Whether nothing was removed, and all this would be.
        cleaned: The folders.
        unread: A sentence for each recipe that can't be read, whose folders stay.
    """

    type: Literal["clean"]
    dry_run: bool
    cleaned: list[CleanedFolder]
    unread: list[str]


class CacheKeyRecord(TypedDict):
    """Output of `cache key`.

    Attributes:
        type: `cache key`.
        key: A key for a CI's cache: equal while recipes, locks, sources, declared files, Python and system are.
        restore_keys: Prefixes to look for where there is none of this key, the nearest first.
        path: The store's folder, relative to the working folder.
        files: What the key was made of, relative to the project's root.
    """

    type: Literal["cache key"]
    key: str
    restore_keys: list[str]
    path: str
    files: list[str]
