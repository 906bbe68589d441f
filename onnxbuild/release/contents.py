"""What a release says of itself against what lies in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import Digest
from onnxbuild.lock.compare import leaves
from onnxbuild.lock.model import Lock
from onnxbuild.release.checksums import Fault


def artifact_below(kind: str, prefix: str, files: Mapping[str, Digest]) -> Artifact:
    """The artifact that the files below a folder of the release make.

    Args:
        kind: Its kind.
        prefix: The folder.
        files: Path in the release -> digest.
    """
    inside = f"{prefix}/"
    return Artifact(
        kind,
        tuple((p.removeprefix(inside), d) for p, d in files.items() if p.startswith(inside)),
    )


def check_artifact(
    lock: Lock, step: str, output: str, artifact: Artifact, where: str
) -> Iterator[Fault]:
    """A folder of the release against the digest that the lock has for a step's output."""
    locked = lock.steps.get(step)
    expected = None if locked is None else locked.outputs.get(output)
    if expected is None:
        yield Fault(where, f"is said to be '{output}' of {step}, of which the lock knows nothing")
    elif expected.sha256 != artifact.sha256:
        yield Fault(where, f"is not the '{output}' of {step} that the lock names")


def check_json(path: Path, name: str, expected: Any, source: str) -> Iterator[Fault]:
    """A file of the release against what the rest of it tells.

    Args:
        path: The file.
        name: Its path in the release.
        expected: What it should hold.
        source: Who says so, with a verb.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        yield Fault(name, "is not readable JSON")
        return
    for place, was, implied in leaves(found, expected):
        yield Fault(name, f"says {place} = {_shown(was)}; {source} {_shown(implied)}")


def hashes_of(component: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(path, sha256) of every file that a bill of materials names, however deep."""
    for each in component.get("components", ()):
        yield from hashes_of(each)
        if each["type"] == "file":
            for digest in each.get("hashes", ()):
                yield each["name"], digest["content"]


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:97]}..."  # noqa: PLR2004 - a terminal's width
