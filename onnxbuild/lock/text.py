"""The lock as a file: sorted YAML, one fact a line, no machine path."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from onnxbuild.core.errors import StoreError, UsageError
from onnxbuild.lock.model import Lock
from onnxbuild.lock.strict import load_strictly
from onnxbuild.regular_files import read_user_file

_HEAD = """\
# All that `{recipe}` was built from, and what came out. Made by `onnxbuild lock`; commit it.
# `onnxbuild run --locked` refuses to build anything else.
"""
_OURS = re.compile(r"Made by `onnxbuild lock`|^onnxbuild: |\Aformat: ", re.MULTILINE)


def lock_path(recipe: Path) -> Path:
    """Path of a recipe's lock: NAME.lock next to NAME.yaml."""
    return recipe.with_suffix(".lock")


def lock_command(recipe: str | Path, *items: str) -> str:
    """Return what to type to renew a lock, for all or for some items alone."""
    updates = "".join(f" --update {shlex.quote(item)}" for item in items)
    return f"onnxbuild lock {shlex.quote(str(recipe))}{updates}"


def is_ours(text: str) -> bool:
    """Return whether a file of a lock's name was made by `onnxbuild lock`, be it damaged since."""
    return not text.strip() or bool(_OURS.search(text))


def lock_text(lock: Lock) -> str:
    """The file's content; equal locks give equal text.

    Raises:
        UsageError: A file has a name that is not UTF-8, which YAML can't hold.
    """
    import yaml

    content = lock.to_json()
    odd = next(filter(None, map(_not_utf_8, [lock.recipe, *_texts(content)])), None)
    if odd:
        raise UsageError(
            f"the name of {odd} is not UTF-8, and a lock can hold no other",
            where=str(lock_path(Path(lock.recipe))),
            fix="rename the file; or, if no step needs it, let no pattern of the recipe match it",
        )
    body = yaml.safe_dump(content, sort_keys=True, allow_unicode=True, width=1 << 20)
    return _HEAD.format(recipe=lock.recipe) + body


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _texts(key)
            yield from _texts(each)
    elif isinstance(value, Sequence):
        for each in value:
            yield from _texts(each)


def _not_utf_8(text: str) -> str | None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text
    return None


def parse_lock(text: str, where: str, fix: str) -> Lock:
    """The lock in a file's content.

    Args:
        text: The content.
        where: The file, for messages.
        fix: What to type if it can't be read.

    Raises:
        UsageError: It is no lock, or one of another format.
    """
    import yaml

    try:
        return Lock.from_json(load_strictly(text))
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise UsageError(
            f"this is not a lock of onnxbuild: {lines[0]}", where=where, fix=fix
        ) from error


def read_lock(recipe: Path) -> Lock:
    """The lock of a recipe file.

    Raises:
        UsageError: There is none, or it can't be read.
    """
    path = lock_path(recipe)
    fix = lock_command(recipe)
    try:
        text = read_user_file(path).decode("utf-8")
    except FileNotFoundError:
        raise UsageError(f"there is no lock for {recipe}", where=str(path), fix=fix) from None
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"can't read the lock: {error}", where=str(path), fix=fix) from error
    return parse_lock(text, str(path), fix)
