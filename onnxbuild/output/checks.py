"""What `lint`, `lock`, `release`, `verify`, `doctor` and `cache` print with `--json`."""

from __future__ import annotations

from typing import Literal, TypedDict

from onnxbuild.output.build import FailureRecord
from onnxbuild.output.models import PushedRecord


class LintRecord(TypedDict):
    """What `lint` prints of recipes without a fault; a faulty one is an error.

    Attributes:
        type: `lint`.
        recipes: Names of the recipes, sorted.
        steps: How many steps they have.
        notes: What they allow and seldom mean.
    """

    type: Literal["lint"]
    recipes: list[str]
    steps: int
    notes: list[str]


class LockedRecord(TypedDict):
    """One lock.

    Attributes:
        recipe: The recipe's file.
        path: The lock's file.
        state: `different`: not up to date, with --check.
        differences: Between the lock that was there and the build.
        steps: How many steps it holds.
        sources: How many sources.
        files: How many files.
        packages: How many installed packages.
        fix: What brings it up to date; empty where it is.
    """

    recipe: str
    path: str
    state: Literal["written", "renewed", "up to date", "different"]
    differences: list[str]
    steps: int
    sources: int
    files: int
    packages: int
    fix: str


class LocksRecord(TypedDict):
    """What `lock` prints.

    Attributes:
        type: `lock`.
        exit_code: 4 where a lock is not up to date, with --check; that of the build where it failed.
        locks: One a recipe; none where the build failed.
        failures: The steps that failed.
    """

    type: Literal["lock"]
    exit_code: int
    locks: list[LockedRecord]
    failures: list[FailureRecord]


class ReleasedRecord(TypedDict):
    """What `release` prints.

    Attributes:
        type: `release`.
        exit_code: 0 where it was released.
        name: NAME-VERSION; empty where it was not released, as all below.
        folder: Its folder, absolute.
        archive: Its archive, absolute.
        sha256: Of the archive, 64 hex digits.
        bytes: Size of the archive.
        files: How many files the release has.
        variants: Names of the variants in it.
        others: What else is in it.
        signed: Whether it is signed.
        written: Whether it was written now; else it was there, identical.
        notices: Remarks.
        pushed: What was pushed; null without --push.
        failures: The steps that failed.
    """

    type: Literal["release"]
    exit_code: int
    name: str
    folder: str
    archive: str
    sha256: str
    bytes: int
    files: int
    variants: list[str]
    others: list[str]
    signed: bool
    written: bool
    notices: list[str]
    pushed: PushedRecord | None
    failures: list[FailureRecord]


class CheckRecord(TypedDict):
    """One check of a release.

    Attributes:
        title: What is checked.
        state: What came out.
        detail: How far it goes; empty where it failed.
        faults: What is wrong.
    """

    title: str
    state: Literal["ok", "skipped", "failed"]
    detail: str
    faults: list[str]


class VerifiedRecord(TypedDict):
    """What `verify` prints.

    Attributes:
        type: `verify`.
        release: As it was given.
        verified: Whether every check passed.
        exit_code: 0 verified, 3 a golden output is out of its tolerance, 4 damaged or altered.
        checks: In the order they ran; the first that fails ends them.
    """

    type: Literal["verify"]
    release: str
    verified: bool
    exit_code: int
    checks: list[CheckRecord]


class MachineFact(TypedDict):
    """What `doctor` found of one topic.

    Attributes:
        topic: `torch`, `provider`, `cpu`, `sandbox`, `store`, ...
        lines: What it found.
    """

    topic: str
    lines: list[str]


class DoctorRecord(TypedDict):
    """What `doctor` prints.

    Attributes:
        type: `doctor`.
        ok: Whether this machine can build.
        problems: What keeps it from that.
        facts: All that was looked at, in the terminal's order.
    """

    type: Literal["doctor"]
    ok: bool
    problems: list[str]
    facts: list[MachineFact]


class StatsRecord(TypedDict):
    """What `cache stats` prints; sizes are in bytes.

    Attributes:
        type: `cache stats`.
        store: Its folder.
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
    """What `cache pins` prints.

    Attributes:
        type: `cache pins`.
        pins: All pins.
    """

    type: Literal["cache pins"]
    pins: list[PinRecord]


class UnpinnedRecord(TypedDict):
    """What `cache unpin` prints.

    Attributes:
        type: `cache unpin`.
        name: The pin that was removed.
    """

    type: Literal["cache unpin"]
    name: str


class StoreCheckRecord(TypedDict):
    """What `cache verify` prints.

    Attributes:
        type: `cache verify`.
        ok: Whether nothing is damaged.
        files: How many files were read.
        damaged: A sentence for each that is.
        repaired: Whether they were set aside, so that the next run rebuilds them.
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
    """

    requirements: str
    runtime: str
    bytes: int


class GarbageRecord(TypedDict):
    """What `cache gc` prints; sizes are in bytes.

    Attributes:
        type: `cache gc`.
        results: How many results were removed.
        blobs: How many files.
        runs: Logs of how many runs.
        bytes: The size of all that.
        left_bytes: Size of the files that are left.
        held_bytes: Of those, pinned ones and ones that are too young.
        environments: What else was removed.
    """

    type: Literal["cache gc"]
    results: int
    blobs: int
    runs: int
    bytes: int
    left_bytes: int
    held_bytes: int
    environments: list[RemovedEnvironment]


class CacheKeyRecord(TypedDict):
    """What `cache key` prints.

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
