"""Carry large files in parts: split them with checksums, and join them where they have arrived.

    python -m benchmarks.gpu.parts split WHEEL... --to FOLDER [--size 60]
    python -m benchmarks.gpu.parts join FOLDER --to FOLDER

A part is FILE.partNNN, at most --size MiB; FILE.parts.json lists their SHA-256 and that of the whole. The parts may
arrive one at a time and in any order. Joining checks each, and writes the whole file or none.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

_MIB = 1 << 20
_LIST = ".parts.json"


class PartsError(Exception):
    """The parts are not those of a whole file; the message says which and what to do."""


def split(file: Path, folder: Path, part_bytes: int) -> list[Path]:
    """Write a file's parts and their list, and return their paths.

    Args:
        file: The whole.
        folder: Where to; made if it is not there.
        part_bytes: The most bytes of a part.

    Raises:
        PartsError: The file can't be read, or the size is none.
    """
    if part_bytes <= 0:
        raise PartsError(f"a part of {part_bytes} bytes holds nothing; fix: --size 60")
    folder.mkdir(parents=True, exist_ok=True)
    whole, parts, paths = hashlib.sha256(), [], []
    try:
        with file.open("rb") as source:
            while content := source.read(part_bytes):
                whole.update(content)
                name = f"{file.name}.part{len(parts):03}"
                (folder / name).write_bytes(content)
                paths.append(folder / name)
                parts.append(
                    {
                        "name": name,
                        "sha256": hashlib.sha256(content).hexdigest(),
                        "bytes": len(content),
                    }
                )
    except OSError as error:
        raise PartsError(f"{file} can't be split: {error.strerror or error}") from error
    listed = {"name": file.name, "sha256": whole.hexdigest(), "parts": parts}
    target = folder / f"{file.name}{_LIST}"
    target.write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    return [*paths, target]


def join(folder: Path, target: Path) -> list[Path]:
    """Join all files whose lists are in a folder, and return their paths.

    Args:
        folder: Holds lists and parts.
        target: Where to; made if it is not there.

    Raises:
        PartsError: There is no list, or a part is missing, damaged or too many.
    """
    lists = sorted(folder.glob(f"*{_LIST}"))
    if not lists:
        raise PartsError(f"{folder} has no list of parts (*{_LIST}); fix: carry it with the parts")
    target.mkdir(parents=True, exist_ok=True)
    return [_join_one(path, target) for path in lists]


def _join_one(path: Path, target: Path) -> Path:
    name, sha256, parts = _listed(path)
    missing = [part for part, _, _ in parts if not (path.parent / part).is_file()]
    if missing:
        raise PartsError(
            f"{name}: {_some(missing)} of {len(parts)} parts did not arrive; fix: carry them again"
        )
    whole, joined = hashlib.sha256(), target / name
    part_file = joined.with_name(f"{name}.joining")
    try:
        with part_file.open("wb") as file:
            for part, expected, size in parts:
                content = (path.parent / part).read_bytes()
                if len(content) != size or hashlib.sha256(content).hexdigest() != expected:
                    raise PartsError(
                        f"{part} is damaged: its SHA-256 is not as listed; fix: carry it again"
                    )
                whole.update(content)
                file.write(content)
        if whole.hexdigest() != sha256:
            raise PartsError(
                f"{name} is not as it was split, though its parts are; fix: split it again"
            )
        part_file.replace(joined)
    finally:
        part_file.unlink(missing_ok=True)
    return joined


def _listed(path: Path) -> tuple[str, str, list[tuple[str, str, int]]]:
    """Name, SHA-256 and parts of a list; its names are plain ones."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        name, sha256 = str(found["name"]), str(found["sha256"])
        parts = [
            (str(each["name"]), str(each["sha256"]), int(each["bytes"])) for each in found["parts"]
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PartsError(f"{path} is no list of parts; fix: carry it again") from error
    for each in (name, *(part for part, _, _ in parts)):
        if each in ("", ".", "..") or os.sep in each or "\0" in each:
            raise PartsError(
                f"{path} names '{each}', which is no file's name; fix: split the file again"
            )
    return name, sha256, parts


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def main(arguments: Iterable[str] | None = None) -> int:
    """Split or join; 2 where it can't be done."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    splitting = verbs.add_parser("split")
    splitting.add_argument("files", nargs="+", type=Path)
    splitting.add_argument("--to", type=Path, required=True)
    splitting.add_argument("--size", type=float, default=60, help="MiB of a part [default: 60]")
    joining = verbs.add_parser("join")
    joining.add_argument("folder", type=Path)
    joining.add_argument("--to", type=Path, required=True)
    given = parser.parse_args(None if arguments is None else list(arguments))
    try:
        if given.verb == "split":
            made = [
                path
                for file in given.files
                for path in split(file, given.to, int(given.size * _MIB))
            ]
        else:
            made = join(given.folder, given.to)
    except PartsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for path in made:
        print(f"{path.stat().st_size:>12,}  {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
