"""An action: all that decides a step's output; its key; and what building it gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import Digest, tagged_sha256
from onnxbuild.core.environment import Interpreter
from onnxbuild.core.step import Finding

KEY_FORMAT = 1  # increment when the meaning of any field of a key changes

NO_FILE = "no file"  # in place of a digest: the file was looked for and was not there

NOT_INSTALLED = "not installed"
"""Marker in place of a package's digest: it was asked for and was not there."""

MAX_TRACES = 8  # results kept a key, one for each set of observed inputs


@dataclass(frozen=True)
class Action:
    """Everything known before a step runs that can change its output.

    Attributes:
        kind: Step kind's name.
        version: Step kind's version.
        params: JSON, defaults filled in.
        inputs: Input name -> sha256 of the artifact.
        files: Declared file -> sha256 of its content; paths as core.places says.
        toolchain: Distribution (or `python`) -> digest.
        host: What of the machine the output depends on; None where it does not.
        outside: Name of a folder outside the project -> where it is on this machine; not part
            of the key, nor of what is recorded.
        interpreter: What runs its sessions, where that is another than its own; not part of the
            key either: its packages are, in `toolchain`.
    """

    kind: str
    version: int
    params: Mapping[str, Any]
    inputs: Mapping[str, str]
    files: Mapping[str, str]
    toolchain: Mapping[str, str]
    host: Mapping[str, str] | None
    outside: Mapping[str, str] = field(default_factory=dict, compare=False)
    interpreter: Interpreter | None = field(default=None, compare=False)

    def to_json(self) -> dict[str, Any]:
        """The fields, as they enter the key."""
        return {
            "kind": self.kind,
            "version": self.version,
            "params": dict(self.params),
            "inputs": dict(self.inputs),
            "files": dict(self.files),
            "toolchain": dict(self.toolchain),
            "host": None if self.host is None else dict(self.host),
        }

    @cached_property
    def key(self) -> str:
        """The weak key: 64 hex digits."""
        return tagged_sha256(f"action/{KEY_FORMAT}", self.to_json())


@dataclass(frozen=True, slots=True)
class Listing:
    """Entries of a folder that could satisfy some names; a new file that would shadow an old one changes it.

    Attributes:
        names: Module names that were looked for, sorted.
        found: Entries of the folder that could satisfy one of them, sorted.
    """

    names: tuple[str, ...]
    found: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Observed:
    """Files, folders and packages that a step's user code was seen to use; paths as core.places says.

    Attributes:
        sources: Python file imported -> sha256 of its syntax tree.
        data: File opened in any other way -> sha256 of its bytes; NO_FILE if there was none.
        listings: Import folder -> what it held of the names looked for.
        distributions: Installed distribution -> digest; NOT_INSTALLED if it was asked for and was
            not there. Names in angle brackets are those of core.step.
        links: Symbolic link that was followed or read -> where it points.
        existence: Path that was looked for and not opened -> `file`, `folder`, `other` or `absent`.
    """

    sources: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    listings: Mapping[str, Listing] = field(default_factory=dict)
    distributions: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    existence: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """A JSON form that `from_json` reads back."""
        return {
            "sources": dict(self.sources),
            "data": dict(self.data),
            "listings": {
                folder: {"names": list(each.names), "found": list(each.found)}
                for folder, each in self.listings.items()
            },
            "distributions": dict(self.distributions),
            "links": dict(self.links),
            "existence": dict(self.existence),
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Observed:
        """The value that `to_json` wrote; KeyError or TypeError if it is none."""
        return Observed(
            sources=dict(value["sources"]),
            data=dict(value["data"]),
            listings={
                folder: Listing(tuple(each["names"]), tuple(each["found"]))
                for folder, each in value["listings"].items()
            },
            distributions=dict(value["distributions"]),
            links=dict(value["links"]),
            existence=dict(value["existence"]),
        )


@dataclass(frozen=True, slots=True)
class Expense:
    """Cost of a run; stored next to a result, in no key."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ActionResult:
    """Result of building an action.

    Attributes:
        key: The action's key.
        observed: What it was seen to use; with `key` it decides the outputs.
        outputs: Output name -> artifact.
        metrics: The step's own numbers.
        findings: Breaches of gates; any fails the run, cached or not.
        notes: Remarks for the user.
        not_applicable: Why it gave no outputs and never will; see NotApplicableError.
        expense: Not part of the result's identity.
        fetched: It came from a remote store or a store below: another machine built it. Not part of the identity either.
    """

    key: str
    observed: Observed
    outputs: Mapping[str, Artifact]
    metrics: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    not_applicable: Finding | None = None
    expense: Expense = field(default_factory=Expense, compare=False)
    fetched: bool = field(default=False, compare=False)

    def digests(self) -> frozenset[Digest]:
        """Return the digest of each file of its outputs."""
        return frozenset(
            digest for artifact in self.outputs.values() for _, digest in artifact.files
        )

    def to_json(self) -> dict[str, Any]:
        """A JSON form that `from_json` reads back."""
        record = {
            "key": self.key,
            "observed": self.observed.to_json(),
            "outputs": {name: artifact.to_json() for name, artifact in self.outputs.items()},
            "metrics": dict(self.metrics),
            "findings": [_row(each) for each in self.findings],
            "notes": list(self.notes),
            "unfit": None if self.not_applicable is None else _row(self.not_applicable),
            "expense": [self.expense.wall_s, self.expense.cpu_s, self.expense.peak_bytes],
        }
        return {**record, "fetched": True} if self.fetched else record

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> ActionResult:
        """The value that `to_json` wrote; KeyError, TypeError or ValueError if it is none."""
        return ActionResult(
            key=str(value["key"]),
            observed=Observed.from_json(value["observed"]),
            outputs={n: Artifact.from_json(each) for n, each in value["outputs"].items()},
            metrics=dict(value["metrics"]),
            findings=tuple(Finding(*each) for each in value["findings"]),
            notes=tuple(value["notes"]),
            not_applicable=None if value.get("unfit") is None else Finding(*value["unfit"]),
            expense=Expense(*value["expense"]),
            fetched=value.get("fetched") is True,
        )


def _row(finding: Finding) -> list[str]:
    return [finding.what, finding.where, finding.fix]
