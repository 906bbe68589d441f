"""Generators of random numbers that user code may draw from: each starts at the same place in every step."""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def seed_generators() -> None:
    """Seed the generators of Python, NumPy and PyTorch: those of loaded modules now, the others when they are loaded."""
    random.seed(0)
    late: dict[str, Callable[[Any], object]] = {}
    for name, (seed_now, seed_later) in _SEEDS.items():
        if name in sys.modules:
            seed_now(sys.modules[name])
        else:
            late[name] = seed_later
    if late:
        sys.meta_path.insert(0, _SeedingFinder(late))


_SEEDS: Mapping[str, tuple[Callable[[Any], object], Callable[[Any], object]]] = {
    "numpy": (lambda numpy: numpy.random.seed(0), lambda numpy: numpy.random.seed(0)),
    # manual_seed takes a traceback, for which Python reads the sources of its callers: inputs, once a step is observed
    "torch": (
        lambda torch: torch.manual_seed(0),
        lambda torch: torch.default_generator.manual_seed(0),
    ),
}
"""Module -> what seeds its generators before the step is observed, and while it is."""


class _SeedingFinder(MetaPathFinder):
    """Finds modules as the other finders do, and seeds their generators when they have been loaded.

    Args:
        seeds: Module -> what to call with it; taken out when the module is looked for.
    """

    def __init__(self, seeds: dict[str, Callable[[Any], object]]) -> None:
        self._seeds = seeds

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - as the interpreter calls it
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        seed = self._seeds.pop(fullname, None)
        if seed is None:
            return None
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_seed(module: ModuleType) -> None:
            execute(module)
            seed(module)

        spec.loader.exec_module = execute_and_seed  # type: ignore[method-assign]
        return spec
