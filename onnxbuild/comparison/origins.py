"""Compare the inputs of two builds: recipe, files and tools, from their locks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from onnxbuild.comparison.difference import Difference, Group
from onnxbuild.comparison.sides import Side
from onnxbuild.document.recipe_names import RecipeName
from onnxbuild.lock.compare import LockDifference, LockPart, differences
from onnxbuild.lock.model import Lock
from onnxbuild.onnxkit.differences.value_change import ValueChange

_WIDEST = 120
_GROUPS = {
    LockPart.RECIPE: Group.RECIPE,
    LockPart.CHOICES: Group.RECIPE,
    LockPart.INPUTS: Group.INPUTS,
    LockPart.TOOLS: Group.TOOLS,
}


def origins(before: Side, after: Side) -> Iterator[Difference]:
    """Yield what differs in recipe, inputs and tools; of sides without a lock, what their bundles say of it."""
    if before.lock is not None and after.lock is not None:
        one = _comparable(before.lock, before.variant or after.variant)
        other = _comparable(after.lock, after.variant or before.variant)
        for each in differences(one, other):
            if not (each.follows or _is_unknown(each, before, after)):
                yield _said(each)
        return
    if len(before.bundles) != 1 or len(after.bundles) != 1:
        return
    old, new = before.bundles[0].manifest, after.bundles[0].manifest
    if old is None or new is None:
        return
    if old.recipe_sha256 != new.recipe_sha256:
        data = {"kind": "recipe digest", "before": old.recipe_sha256, "after": new.recipe_sha256}
        text = "the recipe differs (a bundle alone does not say in what)"
        yield Difference(Group.RECIPE, text, data)
    for name in sorted({*old.versions, *new.versions}):
        left, right = old.versions.get(name, ""), new.versions.get(name, "")
        if left != right:
            data = {"kind": "tools", "name": name, "before": left, "after": right}
            change = ValueChange(f"package {name}", left, right)
            yield Difference(Group.TOOLS, _in_short(change), data, change)


def _is_unknown(each: LockDifference, before: Side, after: Side) -> bool:
    """Return whether something is missing on a side of which some steps may have used it: nobody knows."""
    if each.part not in (LockPart.INPUTS, LockPart.TOOLS):
        return False
    return (before.is_partial and not each.old) or (after.is_partial and not each.new)


def _comparable(lock: Lock, variant: str) -> Lock:
    """A lock with one name for the recipe; if one side means one variant, without the other variants."""
    resolved = {}
    for name, recipe in lock.resolved.items():
        own = {key: value for key, value in recipe.items() if key != "name"}
        if variant and variant in own.get("variants", {}):
            own["variant"] = own.pop("variants")[variant]
        shown = (
            RecipeName("", RecipeName.parse(name).combination) if len(lock.resolved) > 1 else ""
        )
        resolved[str(shown)] = own
    return replace(lock, resolved=resolved, recipe="", steps={}, measurements={})


def _said(each: LockDifference) -> Difference:
    subject = each.path if each.part is LockPart.RECIPE else each.subject
    data = {"kind": "lock", "subject": subject, "before": each.old, "after": each.new}
    change = ValueChange(subject, each.old, each.new)
    text = _in_short(change)
    if each.part is LockPart.INPUTS:
        text = f"{subject} changed ({each.old} -> {each.new})"
        if not each.old or not each.new:
            text = f"{subject} is {'gone' if each.old else 'new'}"
    return Difference(_GROUPS[each.part], text, data, change)


def _in_short(change: ValueChange) -> str:
    return str(ValueChange(change.subject, _cut(change.old), _cut(change.new)))


def _cut(text: str) -> str:
    if text.startswith(("{", "[")):
        text = text.replace("'", "")  # a section of the recipe
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."
