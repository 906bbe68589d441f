"""Parts of transformers models, replaced while exporting by forms that an exporter can follow."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.export.recurrences import RECURRENCES

if TYPE_CHECKING:
    import torch

_MODELS = "transformers.models."
_EXPERTS = "_experts_implementation"


def has_recurrences(module: torch.nn.Module) -> bool:
    """Return whether the files of transformers that `module` is made from hold a loop over the sequence."""
    return any(_replaceable(module))


@contextlib.contextmanager
def scanned_recurrences(module: torch.nn.Module, notes: set[str]) -> Iterator[None]:
    """Replace the loops over the sequence that `module` runs; only torch.export can follow that.

    Args:
        module: Module to export.
        notes: Gets a line for each function whose replacement was called.
    """

    def recording(name: str, replacement: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(replacement)
        def call(*args: Any, **options: Any) -> Any:
            notes.add(f"transformers' {name} is exported as an ONNX Scan over the sequence")
            return replacement(*args, **options)

        return call

    replaced = [(source, name, getattr(source, name)) for source, name in _replaceable(module)]
    try:
        for source, name, _ in replaced:
            setattr(source, name, recording(name, RECURRENCES[name]))
        yield
    finally:
        for source, name, original in replaced:
            setattr(source, name, original)


@contextlib.contextmanager
def grouped_experts(module: torch.nn.Module, notes: set[str]) -> Iterator[None]:
    """Let experts of transformers multiply in groups where their own way is a loop.

    `experts_implementation="eager"` loops over the experts that some token was sent to: their
    number is data. Grouped products compute the same for any routing.

    Args:
        module: Module to export.
        notes: Gets a line where something was changed.
    """
    experts = [each for each in module.modules() if hasattr(each, "_apply_gate")]
    configs = {id(each.config): each.config for each in experts}
    eager = [each for each in configs.values() if getattr(each, _EXPERTS, None) == "eager"]
    try:
        for config in eager:
            setattr(config, _EXPERTS, "grouped_mm")
            notes.add('exported with `experts_implementation="grouped_mm"` in place of `eager`')
        yield
    finally:
        for config in eager:
            setattr(config, _EXPERTS, "eager")


def _replaceable(module: torch.nn.Module) -> list[tuple[ModuleType, str]]:
    return [
        (source, name)
        for source in _sources(module)
        for name in RECURRENCES
        if hasattr(source, name)
    ]


def _sources(module: torch.nn.Module) -> list[ModuleType]:
    """The files of transformers that define the classes of `module` and of what is in it."""
    names = {
        base.__module__
        for each in module.modules()
        for base in type(each).__mro__
        if base.__module__.startswith(_MODELS)
    }
    return [sys.modules[name] for name in sorted(names) if name in sys.modules]
