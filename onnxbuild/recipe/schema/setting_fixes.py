"""Say what to type for a setting (`--set KEY=VALUE`) that is wrong: all of it, with the whole path of its key."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import pairwise

from onnxbuild.core.recipe import Location
from onnxbuild.document.faults import Fault, hinted, nearest
from onnxbuild.document.node import Node, Path, dotted, key_places, members_at
from onnxbuild.recipe.schema.aliases import key_meant
from onnxbuild.recipe.schema.places import places, with_name

_SEPARATORS = re.compile(r"[:/\\\[\]\s]+")
_WRITTEN = re.compile(r"write `([^`]+)`((?:, in \w+)?)")
_SEVERAL = re.compile(r",\s*(?=[a-z_][\w.]*=)")
_INDEX = re.compile(r"\[\d+\]$")
_SURELY = 0.9
_SHOWN_MAX = 3
_UNSET = frozenset({"extends", "vars", "matrix"})


def is_slip(key: str, near: str) -> bool:
    """Return whether a key is another one but for a letter or two: `provider`, but not `mode` for `model`."""
    return SequenceMatcher(None, key, near).ratio() > _SURELY


def setting_of(key: str, text: str) -> str:
    """Return a setting as it is typed.

    Args:
        key: Its dotted key.
        text: Its value.
    """
    return f"--set {shlex.quote(f'{key}={text}')}"


def keys_meant(root: Node, key: str, known: Collection[str]) -> list[str]:
    """Return the dotted keys that a name may mean which is none: with other separators, or without the keys above it.

    Args:
        root: The merged recipe.
        key: The name.
        known: The top-level keys of a recipe.

    Returns: The likeliest alone, or those of the recipe that end with it; none if nothing has that name.
    """
    parts = parts_of(key)
    settable = [name for name in known if name not in _UNSET]
    for start in range(len(parts)):
        rest = parts[start:]
        if rest[0] in settable and (start or rest != key.split(".")):
            return [".".join(rest)]
        if found := _ends(root, rest, settable):
            return found
    return []


def parts_of(key: str) -> list[str]:
    """Return the names that a key consists of, with whatever between them."""
    return [part for part in _SEPARATORS.sub(".", key).strip(".-").split(".") if part]


def unknown_setting(
    root: Node, setting: tuple[str, str], known: Collection[str], at: Location
) -> Fault:
    """Return the fault of a setting whose name is none, or has a blank next to it.

    Args:
        root: The merged recipe.
        setting: Its key and its text.
        known: The top-level keys of a recipe.
        at: The place.
    """
    key, text = setting
    if key != key.strip():
        meant = setting_of(".".join(parts_of(key)), text.strip())
        what = f"a blank stands next to the '=' of --set {key.strip()}"
        return Fault(what, at, f"write `{meant}`")
    first = key.partition(".")[0]
    names_known = [name for home in ("vars", "matrix") for name in members_at(root, (home,))]
    names_known += [name for name in known if name not in ("extends", "vars", "matrix")]
    whole = nearest(key, [each for each in names_known if each.count(".") == key.count(".")])
    near = key_meant(first, names_known) or whole or nearest(first, names_known)
    is_surely = is_slip(key, whole) or is_slip(first, near)
    meant_keys = [] if is_surely else keys_meant(root, key, known)
    what = f"--set names '{key}', which is no var, no matrix name and no key of the recipe"
    fix = "name a var of the recipe, or a dotted key such as `quantization.int8.per_channel`"
    if meant_keys:
        near = ""
        fix = f"write {' or '.join(f'`{setting_of(each, text)}`' for each in meant_keys[:_SHOWN_MAX])}"
    elif near:
        fix = f"write `{setting_of(near if near == whole else near + key[len(first) :], text)}`"
    return Fault(hinted(what, near), at, fix)


def _ends(root: Node, parts: list[str], settable: list[str]) -> list[str]:
    """Places in the recipe that end with the first of the parts, followed by the others; else the one where it may stand."""
    first, *below = parts
    written = [
        ".".join((place, *below))
        for place, _ in key_places(root)
        if place.endswith(f".{first}") and place.partition(".")[0] in settable
    ]
    if written or below:
        return written
    found = dict.fromkeys(with_name(dotted(each.path), root) for each in places(first, ()))
    return [each for each in found if "." in each]


def whole_setting(fault: Fault, settings: Mapping[str, str]) -> Fault:
    """Return a fault in a setting with a fix that is typed in its place; others as they are.

    Args:
        fault: Of a recipe.
        settings: Dotted key -> text, as they were typed.
    """
    key = fault.at.path.removeprefix("--set ")
    if fault.at.line or key not in settings:
        return fault
    if len(pairs := _SEVERAL.split(f"{key}={settings[key]}")) > 1:
        each_of_them = " ".join(f"--set {shlex.quote(pair)}" for pair in pairs)
        return replace(fault, fix=f"write `{each_of_them}`")
    written = _WRITTEN.fullmatch(fault.fix)
    if fault.fix == "remove it":
        return replace(fault, fix=f"leave out {setting_of(key, settings[key])}")
    if written is None:
        return fault
    if fault.meant and _INDEX.search(key):
        return replace(fault, fix=f"set `{_INDEX.sub('', key)}` as a whole, or edit the recipe")
    if fault.meant:
        names = _renamed(key, fault.path, fault.meant)
        return (
            replace(fault, fix=f"write `{setting_of(names, settings[key])}`") if names else fault
        )
    if fault.path and key.startswith(f"{dotted(fault.path)}."):
        key = dotted(fault.path)
    elif dotted(fault.path) != key and not dotted(fault.path).endswith(f".{key}"):
        return fault  # the value is a mapping or a list, and one in it is wrong
    return replace(fault, fix=f"write `{setting_of(key, written[1])}`{written[2]}")


def _renamed(key: str, path: Path, meant: str) -> str:
    """The key of a setting with another name for the last of `path`; empty if it does not reach there."""
    parts = key.split(".")
    whole = [".".join(parts[:n]) for n in range(1, len(parts) + 1)]
    for above, here in pairwise(["", *whole]):
        if here == dotted(path):
            return ".".join(filter(None, (above, meant, key[len(here) + 1 :])))
    return ""
