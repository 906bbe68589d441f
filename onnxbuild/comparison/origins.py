"""What two builds were made of: recipe, inputs and tools, from their locks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from onnxbuild.comparison.sides import Side
from onnxbuild.lock.compare import LockDifference, differences
from onnxbuild.lock.model import Lock

Found = tuple[str, str, dict[str, Any]]
"""(group, sentence, data)."""

_WIDEST = 120
_RECIPE, _CHOICE = "recipe ", "choice for "
_INPUTS = ("file ", "source ", "folder ")


def origins(before: Side, after: Side) -> Iterator[Found]:
    """Yield what differs in recipe, inputs and tools; of sides without a lock, what their bundles say of it."""
    if before.lock is not None and after.lock is not None:
        one, other = _comparable(before, before.lock), _comparable(after, after.lock)
        for each in differences(one, other):
            if not each.follows:
                yield _said(each)
        return
    if len(before.bundles) != 1 or len(after.bundles) != 1:
        return
    old, new = before.bundles[0].manifest, after.bundles[0].manifest
    if old is None or new is None:
        return
    if old.recipe_sha256 != new.recipe_sha256:
        data = {"kind": "recipe digest", "before": old.recipe_sha256, "after": new.recipe_sha256}
        yield "recipe", "the recipe differs (a bundle alone does not say in what)", data
    for name in sorted({*old.versions, *new.versions}):
        left, right = old.versions.get(name, ""), new.versions.get(name, "")
        if left != right:
            data = {"kind": "tools", "name": name, "before": left, "after": right}
            yield "tools", _arrow(f"package {name}", left, right), data


def _comparable(side: Side, lock: Lock) -> Lock:
    """A lock with one name for the recipe; of a variant, without the other variants."""
    resolved = {}
    for name, recipe in lock.resolved.items():
        own = {key: value for key, value in recipe.items() if key != "name"}
        if side.variant and side.variant in own.get("variants", {}):
            own["variant"] = own.pop("variants")[side.variant]
        resolved[f"@{name.partition('@')[2]}" if len(lock.resolved) > 1 else ""] = own
    return replace(lock, resolved=resolved, recipe="", steps={}, measurements={})


def _said(each: LockDifference) -> Found:
    subject = each.subject
    data = {"kind": "lock", "subject": subject.strip(), "before": each.old, "after": each.new}
    if subject.startswith(_RECIPE):
        path = subject.removeprefix(_RECIPE).lstrip(".")
        return "recipe", _arrow(path, each.old, each.new), {**data, "subject": path}
    if subject.startswith(_CHOICE):
        return "recipe", _arrow(subject, each.old, each.new), data
    if subject.startswith(_INPUTS):
        what = "changed"
        if not each.old or not each.new:
            what = "is gone" if each.old else "is new"
        return "inputs", f"{subject} {what}{_short(each)}", data
    return "tools", _arrow(subject, each.old, each.new), data


def _short(each: LockDifference) -> str:
    return f" ({each.old} -> {each.new})" if each.old and each.new else ""


def _arrow(subject: str, old: str, new: str) -> str:
    if not old:
        return f"{subject} is new: {_cut(new)}"
    if not new:
        return f"{subject} is gone; it was {_cut(old)}"
    return f"{subject}: {_cut(old)} -> {_cut(new)}"


def _cut(text: str) -> str:
    if text.startswith(("{", "[")):
        text = text.replace("'", "")  # a section of the recipe
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."
