"""Arguments of `run`: read, and checked as the command line checks its options."""

import json
import os
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from onnxbuild.core.errors import UsageError

PathLike = str | os.PathLike[str]


def listed(names: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return names of variants or steps: of one, of several, or none."""
    return (names,) if isinstance(names, str) else tuple(names or ())


def paths_given(recipe: PathLike | Sequence[PathLike] | None) -> list[str]:
    """Return recipes as they are typed on a command line: of one, of several, or none."""
    given = (recipe,) if isinstance(recipe, str | os.PathLike) else tuple(recipe or ())
    return [os.fspath(each) for each in given]


def path_given(name: str, path: PathLike) -> str:
    """Return a path, which may not be empty: that would be the working folder.

    Raises:
        UsageError: It is empty.
    """
    found = os.fspath(path)
    if not found:
        raise UsageError(f"`{name}` is empty", fix="write a path, or leave it out")
    return found


def as_text(key: str, value: object) -> str:
    """Return a setting as `--set` takes it: text as it is, else YAML that says the same.

    Args:
        key: The setting's key, for the message.
        value: Its value: text, a path, a number, also NumPy's, a list or a mapping of these.

    Raises:
        UsageError: YAML can't say it.
    """
    if isinstance(value, str | os.PathLike):
        return os.fspath(value)
    try:
        return json.dumps(value, default=_plain, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"settings[{key!r}] is {value!r}, which a recipe can't hold",
            fix="write text, a path, a number, True, False, None, a list or a dict of these",
        ) from error


def _plain(value: object) -> object:
    """Return a path as text, and NumPy's numbers and arrays as Python's."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    plain = getattr(value, "tolist", None)
    if plain is None:
        raise TypeError(f"{type(value).__name__} is not JSON")
    return plain()


def check_limits(jobs: int | None, memory_bytes: int | None, timeout_s: float) -> None:
    """Check the limits of a run: -1 jobs would wait forever for a free place.

    Raises:
        UsageError: One is not above 0.
    """
    if jobs is not None and not _is_positive(jobs, Integral):
        raise UsageError(
            f"`jobs` is {jobs!r}; expected a number of steps, 1 or more",
            fix="leave it out for one step a core",
        )
    if memory_bytes is not None and not _is_positive(memory_bytes, Real):
        raise UsageError(
            f"`memory_bytes` is {memory_bytes!r}; expected bytes, 1 or more",
            fix="leave it out for 90 % of the machine's memory",
        )
    if not _is_positive(timeout_s, Real):
        raise UsageError(
            f"`timeout_s` is {timeout_s!r}; expected seconds above 0",
            fix='write `float("inf")` for no limit',
        )


def _is_positive(value: Any, kind: type) -> bool:
    """Return whether a value is a number of a kind, also NumPy's, above 0; NaN is not."""
    is_number = isinstance(value, kind)
    return is_number and bool(value > 0)
