"""Check a release's statements about itself against its contents."""

import json
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

from onnxbuild.core.artifact import Artifact
from onnxbuild.lock.compare import MISSING, leaves
from onnxbuild.lock.model import Lock
from onnxbuild.release_format.checksums import ReleaseFault
from onnxbuild.release_format.forms import json_bytes, read_json

OTHER_BYTES = "says what it should, in other bytes than a release has"


def check_artifact(
    lock: Lock, step: str, output: str, artifact: Artifact, where: str
) -> Iterator[ReleaseFault]:
    """A folder of the release against the digest that the lock has for a step's output."""
    locked = lock.steps.get(step)
    expected = None if locked is None else locked.outputs.get(output)
    if expected is None:
        yield ReleaseFault(where, f"is said to be '{output}' of {step}, which is not in the lock")
    elif expected.sha256 != artifact.sha256:
        yield ReleaseFault(where, f"is not the '{output}' of {step} that the lock names")


def check_bytes(found: bytes, name: str, expected: bytes, source: str) -> Iterator[ReleaseFault]:
    """Compare a file of the release with the one derived from the rest, byte for byte.

    Args:
        name: Its path in the release.
        expected: What it should hold.
    """
    if found == expected:
        return
    lines = zip(found.split(b"\n"), expected.split(b"\n"), strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], lines))
    yield ReleaseFault(name, f"is not as {source} implies: line {same + 1}")


def check_json(found: bytes, name: str, expected: Any, source: str) -> Iterator[ReleaseFault]:
    """Compare a JSON file of the release with the one derived from the rest, byte for byte.

    Args:
        name: Its path in the release.
        expected: The value that it should hold.
        source: Who says so, with a verb.
    """
    if found == json_bytes(expected):
        return
    try:
        value = read_json(found)
    except ValueError as error:
        yield ReleaseFault(name, f"is not readable JSON: {error}")
        return
    faults = [
        ReleaseFault(name, f"says {place} = {_shown(was)}; {source} {_shown(implied)}")
        for place, was, implied in leaves(value, expected)
    ]
    yield from faults or [ReleaseFault(name, OTHER_BYTES)]


def hashes_of(component: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(path, sha256) of every file that a bill of materials names, however deep."""
    for each in component.get("components", ()):
        yield from hashes_of(each)
        if each["type"] == "file":
            for digest in each.get("hashes", ()):
                yield each["name"], digest["content"]


def _shown(value: object) -> str:
    text = "nothing" if value is MISSING else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:97]}..."  # noqa: PLR2004 - a terminal's width
