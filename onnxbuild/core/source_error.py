"""The error of a model's file or folder, or of a recipe's statement about it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class SourceError(ValueError):
    """A model that can't be read, or that a recipe can't declare as it does.

    Attributes:
        what: One sentence.
        fix: Something to type.
        key: Path of the key of the recipe that is at fault; empty for the file itself.
        mend: Keys of a recipe that mend it, as JSON; `init` writes them, inputs with a mark to fill them in.
    """

    def __init__(self, what: str, fix: str, *key: str, mend: Mapping[str, Any] = _NOTHING) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix
        self.key = key
        self.mend = mend


@contextmanager
def about(path: Path) -> Iterator[None]:
    """Begin the sentences of all SourceErrors inside with a file's name."""
    try:
        yield
    except SourceError as error:
        what = f"{path.name}: {error.what}"
        raise SourceError(what, error.fix, *error.key, mend=error.mend) from error
