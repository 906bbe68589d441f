"""The lock as a file: sorted YAML, one fact a line, no machine path; read so that it says one thing."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from onnxbuild.core.errors import StoreError, UsageError
from onnxbuild.lock.model import Lock
from onnxbuild.regular_files import read_user_file

_MOST_VALUES = 10_000_000
_MARKS, _MOST_MARKS = ("\n", ",", "[", "{", "- "), 1_500_000
"""Texts of which each value has one, and how many a lock has at most: PyYAML takes 700 bytes for each value."""


def load_strictly(text: str) -> Any:
    """The value of a YAML document as `lock_text` writes it.

    Raises:
        yaml.YAMLError: It is none, or holds what leaves open which value is meant.
    """
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Refuses whatever could stand for two things."""

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's
            known: set[str] = set()
            for key, _ in node.value:
                if key.tag != "tag:yaml.org,2002:str":
                    raise _fault(f"key '{key.value}' is not a string", key)
                if key.value in known:
                    raise _fault(f"key '{key.value}' is written twice", key)
                known.add(key.value)
            found: dict[Any, Any] = super().construct_mapping(node, deep)
            return found

    def _fault(what: str, node: Any) -> yaml.YAMLError:
        return yaml.YAMLError(f"{what} (line {node.start_mark.line + 1})")

    if sum(map(text.count, _MARKS)) > _MOST_MARKS:
        raise yaml.YAMLError("it has more values than a lock has")
    loader = Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _values(node, {}) > _MOST_VALUES:
            raise _fault("aliases stand for more values than a lock has", node)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _values(node: Any, known: dict[int, float]) -> float:
    """Count the values that a node holds, each alias as all that it stands for.

    Forty lines of aliases to aliases are more than anybody can walk through, and an alias within what it
    stands for has no end.
    """
    if not isinstance(node.value, list):
        return 1
    if id(node) not in known:
        known[id(node)] = float("inf")  # until it is counted: it may be within itself
        pairs = ((each,) if hasattr(each, "value") else each for each in node.value)
        known[id(node)] = 1 + sum(_values(each, known) for pair in pairs for each in pair)
    return known[id(node)]


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
