"""Lists of requirements that leave nothing open: one distribution of one version a line."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_PIN = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[\w\s.,-]*\])?\s*"
    r"==\s*(?P<version>[A-Za-z0-9][A-Za-z0-9.!+_-]*)\s*(?:;.*)?"
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_HASH = re.compile(r"--hash[= ]\S+")
_COMMENT = re.compile(r"(^|\s)#.*$")
_WHERE_FROM = ("--no-index", "--index-url", "--extra-index-url", "--find-links", "--only-binary", "--no-binary",
               "--prefer-binary", "--require-hashes", "-i ", "-f ")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pin:
    """One line.

    Attributes:
        name: Normalized (PEP 503).
        version: Exactly this one.
        line: From 1.
    """

    name: str
    version: str
    line: int


@dataclass(frozen=True, slots=True)
class Unpinned:
    """A line that leaves something open.

    Attributes:
        what: Its text and what is expected.
        line: From 1.
        fix: What to write instead.
    """

    what: str
    line: int
    fix: str


def read_pins(text: str) -> tuple[tuple[Pin, ...], tuple[Unpinned, ...]]:
    """The pins of a list, and what of it is none.

    Options that say where packages come from may stand in it; hashes, too.

    Args:
        text: The file's content, in pip's format.
    """
    pins: list[Pin] = []
    faults: list[Unpinned] = []
    for line, written in _logical_lines(text):
        if written.startswith(_WHERE_FROM):
            continue
        found = _PIN.fullmatch(_HASH.sub("", written).strip())
        if found is None or found["version"].endswith("."):
            faults.append(_unpinned(written, line))
        else:
            pins.append(Pin(_normalized(found["name"]), found["version"], line))
    if not pins and not faults:
        faults.append(
            Unpinned("the list is empty", 1, "write a line like `onnxruntime-openvino==1.24.1`")
        )
    return tuple(pins), tuple(faults)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """(number, text) without comments; a backslash at its end joins a line to the next."""
    begun, joined = 0, ""
    for number, line in enumerate(text.splitlines(), start=1):
        joined += _COMMENT.sub("", line)
        begun = begun or number
        if joined.endswith("\\"):
            joined = f"{joined[:-1]} "
            continue
        if joined.strip():
            yield begun, joined.strip()
        begun, joined = 0, ""
    if joined.strip():
        yield begun, joined.strip()


def _unpinned(written: str, line: int) -> Unpinned:
    shown = written if len(written) <= 60 else f"{written[:57]}..."  # noqa: PLR2004 - for the eye
    if written.startswith("-") or "@" in written or "://" in written:
        return Unpinned(
            f"'{shown}' is no pinned requirement; expected NAME==VERSION",
            line,
            "write what it stands for: `pip freeze` in an environment that has it gives the lines",
        )
    name = _NAME.match(written)
    example = f"{name[0]}==1.2.3" if name else "onnxruntime-openvino==1.24.1"
    return Unpinned(
        f"'{shown}' is not pinned; expected NAME==VERSION",
        line,
        f"name one version: `{example}` (`pip freeze` gives those that are installed)",
    )


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
