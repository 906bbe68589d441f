"""Hit or miss, and why: the reason is data, made where the decision is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onnxbuild.core.action import Action, ActionResult, Listing, Observed

_SHORT = 12


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that differs.

    Attributes:
        subject: What changed: `param options.per_channel`, `source recipes/models/a.py`, ...
        old: Its value at the last build; empty where there was none.
        new: Its value now; empty where it is gone.
    """

    subject: str
    old: str = ""
    new: str = ""

    def __str__(self) -> str:
        if not self.old and not self.new:
            return self.subject
        return f"{self.subject}: {self.old or '(none)'} -> {self.new or '(gone)'}"


@dataclass(frozen=True, slots=True)
class Hit:
    """The result is already there."""

    result: ActionResult


@dataclass(frozen=True, slots=True)
class Miss:
    """The step has to run; `reasons` lists the changes, most important first."""

    reasons: tuple[Reason, ...]


Decision = Hit | Miss

FIRST_BUILD = Reason("never built here")
FORCED = Reason("--force")


def changed_action(old: Mapping[str, Any], new: Action) -> tuple[Reason, ...]:
    """Return what differs between the action last built under a step's name and this one."""
    now = new.to_json()
    reasons = [
        Reason(f"{label}{path}", before, after)
        for field, label in (
            ("kind", "step kind"),
            ("version", "step version"),
            ("params", "param "),
            ("inputs", "input "),
            ("files", "file "),
            ("toolchain", "package "),
            ("host", "host "),
        )
        for path, before, after in _differences(old.get(field) or {}, now[field] or {}, "")
    ]
    return tuple(reasons) or (Reason("the recorded result is not in the store"),)


def changed_observed(old: Observed, now: Observed) -> tuple[Reason, ...]:
    """Return what differs between the inputs a step was seen to use and their state now."""
    reasons = []
    for label, before, after in (
        ("source", old.sources, now.sources),
        ("file", old.data, now.data),
        ("package", old.distributions, now.distributions),
        ("link", old.links, now.links),
        ("path", old.existence, now.existence),
    ):
        reasons += [
            Reason(f"{label} {name}", shorten(before[name]), shorten(after.get(name, "")))
            for name in before
            if before[name] != after.get(name)
        ]
    for folder, listing in old.listings.items():
        current = now.listings.get(folder, Listing(listing.names, ()))
        reasons += [
            Reason(f"file {folder}/{n}", "", "new")
            for n in current.found
            if n not in listing.found
        ]
        reasons += [
            Reason(f"file {folder}/{n}", "there", "")
            for n in listing.found
            if n not in current.found
        ]
    return tuple(reasons)


def _differences(old: object, new: object, path: str) -> list[tuple[str, str, str]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        found = []
        for key in sorted({*old, *new}, key=str):
            inner = f"{path}.{key}" if path else str(key)
            found += _differences(old.get(key), new.get(key), inner)
        return found
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        found = []
        for number, (left, right) in enumerate(zip(old, new, strict=True)):
            found += _differences(left, right, f"{path}[{number}]")
        return found
    return [] if old == new else [(path, shorten(old), shorten(new))]


def shorten(value: object) -> str:
    """A value for a message: digests cut for the eye only, long ones elided."""
    if value is None:
        return ""
    text = str(value)
    if len(text) == 64 and all(c in "0123456789abcdef" for c in text):  # noqa: PLR2004 - a sha256
        return text[:_SHORT]
    return text if len(text) <= 80 else f"{text[:77]}..."  # noqa: PLR2004 - a terminal's width
