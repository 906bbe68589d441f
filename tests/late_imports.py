"""What is imported at its first use.

Each worker of a run reads all test files: only the one that runs the tests of a file should wait for scikit-learn or Keras.
"""

import importlib


class Late:
    """A module, or what has a name in it."""

    def __init__(self, module: str, name: str | None = None):
        self._module, self._name = module, name

    def _found(self):
        module = importlib.import_module(self._module)
        return module if self._name is None else getattr(module, self._name)

    def __getattr__(self, attribute: str):
        if attribute.startswith("__"):  # pytest asks each name of a file for `__test__`
            raise AttributeError(attribute)
        return getattr(self._found(), attribute)

    def __call__(self, *args, **kwargs):
        return self._found()(*args, **kwargs)


def late(module: str, *names: str) -> list[Late]:
    """Classes and functions of a module."""
    return [Late(module, name) for name in names]
