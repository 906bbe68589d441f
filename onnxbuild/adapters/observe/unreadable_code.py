"""Refuse imports from folders that a step may not read: plain Python would import from there."""

import importlib.machinery
import os
import shlex

from onnxbuild.adapters.kernel.kernel_watch import open_quietly
from onnxbuild.core.errors import UndeclaredInputError


class UnreadableCode:
    """Refuses imports from folders on sys.path that the step may not read; user code has put them there."""

    def __init__(self) -> None:
        self._readable: set[str] = set()
        self._fault: UndeclaredInputError | None = None

    def refuse(self, folder: str, name: str) -> None:
        """Refuse a module that would be passed over because its folder can't be listed.

        Args:
            folder: Absolute; the import system looks for the module there.
            name: The module's, without dots.

        Raises:
            UndeclaredInputError: The module is there.
        """
        if folder in self._readable:
            return
        try:
            os.close(open_quietly(folder, os.O_RDONLY | os.O_DIRECTORY))
        except PermissionError:
            if any(os.path.exists(path) for path in _files_of(folder, name)):
                raise self._refusal(folder, name) from None
            return
        except OSError:
            return  # it is no folder: nothing can be imported from there
        self._readable.add(folder)

    def refuse_what_was_passed_over(self) -> None:
        """Raise the refusal again if the code has caught it and continued without the module.

        Raises:
            UndeclaredInputError: See `refuse`.
        """
        if self._fault is not None:
            raise self._fault

    def _refusal(self, folder: str, name: str) -> UndeclaredInputError:
        self._fault = UndeclaredInputError(
            f"'{name}' would be imported from {folder}, which is on sys.path, but belongs neither to "
            "the project nor to installed software: the step may not read it",
            where=folder,
            fix=f"`export PYTHONPATH={shlex.quote(folder)}${{PYTHONPATH:+:$PYTHONPATH}}`, and run again",
        )
        return self._fault


def _files_of(folder: str, name: str) -> list[str]:
    path = os.path.join(folder, name)
    modules = [path + suffix for suffix in importlib.machinery.all_suffixes()]
    return [os.path.join(path, "__init__.py"), *modules]
