"""Two locks: what differs, in the order in which it matters."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from onnxbuild.core.decision import shorten
from onnxbuild.lock.model import Lock

MEASUREMENTS = "measurements"


class Absence(Enum):
    """Stands where one of two JSON values has nothing, which is not the same as null."""

    MISSING = "missing"


MISSING: Final = Absence.MISSING
_SCALARS = (bool, int, float, str)  # a bool is an int, too: it is looked for first


class LockPart(Enum):
    """Part of a lock that a difference is in."""

    RECIPE = "recipe"
    CHOICES = "choices"
    INPUTS = "inputs"
    TOOLS = "tools"
    STEPS = "steps"


@dataclass(frozen=True, slots=True)
class LockDifference:
    """One fact that differs.

    Attributes:
        item: What `lock --update` takes: `recipe`, `host`, `python`, a package, a path, a step.
        subject: What it is, for a message.
        old: As locked; empty if it is not in the lock.
        new: As it is; empty if it is gone.
        part: What of the lock it is in.
        path: Of the recipe or a choice: the dotted path of the value.
    """

    item: str
    subject: str
    old: str
    new: str
    part: LockPart
    path: str = ""

    @property
    def follows(self) -> bool:
        """Whether it is a step's key or output, which follow from the other facts."""
        return self.part is LockPart.STEPS

    def __str__(self) -> str:
        return f"{self.subject}: {self.old or '(not in the lock)'} -> {self.new or '(gone)'}"


def differences(locked: Lock, now: Lock) -> tuple[LockDifference, ...]:
    """Return what differs: first what goes into a build, then what comes out; measurements never count."""
    tools, recipe, choices = LockPart.TOOLS, LockPart.RECIPE, LockPart.CHOICES
    found = [
        *_facts(tools, "onnxbuild", "onnxbuild", {"": locked.onnxbuild}, {"": now.onnxbuild}),
        *_facts(tools, "recipe", "recipe's file", {"": locked.recipe}, {"": now.recipe}),
        *_facts(recipe, "recipe", "recipe ", locked.resolved, now.resolved),
        *_facts(choices, "choices", "choice for ", locked.choices, now.choices),
        *_facts(tools, "host", "host ", locked.host, now.host),
        *_facts(tools, "python", "python", {"": locked.python}, {"": now.python}),
    ]
    inputs: tuple[tuple[LockPart, str, Mapping[str, Any], Mapping[str, Any]], ...] = (
        (LockPart.TOOLS, "package ", locked.packages, now.packages),
        (LockPart.INPUTS, "file ", locked.files, now.files),
        (LockPart.INPUTS, "source ", locked.sources, now.sources),
        (LockPart.INPUTS, "folder ", locked.folders, now.folders),
    )
    for part, label, before, after in inputs:
        for name in sorted({*before, *after}):
            found += [
                LockDifference(name, f"{label}{name}{path}", _short(was), _short(now_is), part)
                for path, was, now_is in leaves(
                    before.get(name, MISSING), after.get(name, MISSING)
                )
            ]
    return (*found, *_steps(locked, now))


def _steps(locked: Lock, now: Lock) -> Iterator[LockDifference]:
    """Yield the differences of steps in graph order: the first is what made the rest differ."""
    for name in dict.fromkeys((*now.steps, *locked.steps)):
        old, new = locked.steps.get(name), now.steps.get(name)
        if old is None or new is None:
            before, after = ("", "there") if old is None else ("there", "")
            yield LockDifference(name, f"step {name}", before, after, LockPart.STEPS)
            continue
        if (before := old.kind_version) != (after := new.kind_version):
            yield LockDifference(name, f"step kind of {name}", before, after, LockPart.STEPS)
        for output in sorted({*old.outputs, *new.outputs}):
            was, now_is = old.outputs.get(output), new.outputs.get(output)
            if was != now_is:
                yield LockDifference(
                    name,
                    f"{output} of {name}",
                    "" if was is None else f"{shorten(was.sha256)} ({was.size_bytes} bytes)",
                    ""
                    if now_is is None
                    else f"{shorten(now_is.sha256)} ({now_is.size_bytes} bytes)",
                    LockPart.STEPS,
                )
        if old.key != new.key:
            yield LockDifference(
                name, f"key of {name}", shorten(old.key), shorten(new.key), LockPart.STEPS
            )


def _facts(
    part: LockPart, item: str, label: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> list[LockDifference]:
    return [
        LockDifference(item, f"{label}{path}", _short(before), _short(after), part, path)
        for path, before, after in leaves(old, new)
    ]


def leaves(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(dotted path, old value, new value) of all that differs between two JSON values.

    MISSING stands for a value that is not there; 1, 1.0 and true differ.
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*old, *new)):
            inner = f"{path}.{key}" if path else str(key)
            yield from leaves(old.get(key, MISSING), new.get(key, MISSING), inner)
    elif (
        isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)) and len(old) == len(new)
    ):
        for number, (left, right) in enumerate(zip(old, new, strict=True)):
            yield from leaves(left, right, f"{path}[{number}]")
    elif old != new or _kind(old) is not _kind(new):
        yield path, old, new


def _kind(value: object) -> type:
    """Return the type that JSON gives a value; a list and a tuple are the same there."""
    known = (kind for kind in (*_SCALARS, Mapping) if isinstance(value, kind))
    return next(known, list if isinstance(value, (list, tuple)) else type(value))


def _short(value: object) -> str:
    """Shorten a value for a message: each digest in it is cut."""
    if value is MISSING:
        return ""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "nothing"
    return " ".join(shorten(word) for word in str(value).split(" ")) or "''"
