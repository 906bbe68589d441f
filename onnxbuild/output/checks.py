"""The JSON that `lint`, `lock`, `release`, `verify` and `doctor` print with `--json`."""

from typing import Literal, TypedDict

from onnxbuild.output.build import FailureRecord
from onnxbuild.output.models import PushedRecord


class LintRecord(TypedDict):
    """Output of `lint` of recipes without a fault; a faulty one is an error.

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
    """Output of `lock`.

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
    """Output of `release`.

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
    """Output of `verify`.

    Attributes:
        type: `verify`.
        release: As it was given.
        consistent: Whether every check passed.
        verified: Whether, besides, the signature was checked (`--key`) or the release was built again
            (`--rebuild`). Without these, whoever made it may have written all of it.
        exit_code: 0 every check passed, 3 a golden output is out of its tolerance, 4 damaged or altered.
        checks: In the order they ran; the first that fails ends them.
    """

    type: Literal["verify"]
    release: str
    consistent: bool
    verified: bool
    exit_code: int
    checks: list[CheckRecord]


class MachineFact(TypedDict):
    """Finding of `doctor` on one topic.

    Attributes:
        topic: `torch`, `provider`, `cpu`, `sandbox`, `store`, ...
        lines: What it found.
    """

    topic: str
    lines: list[str]


class MachineProblem(TypedDict):
    """Problem that keeps a machine from building.

    Attributes:
        what: In a sentence.
        fix: What to type.
    """

    what: str
    fix: str


class DoctorRecord(TypedDict):
    """Output of `doctor`.

    Attributes:
        type: `doctor`.
        ok: Whether this machine can build.
        problems: What keeps it from that.
        facts: All that was looked at, in the terminal's order.
    """

    type: Literal["doctor"]
    ok: bool
    problems: list[MachineProblem]
    facts: list[MachineFact]
