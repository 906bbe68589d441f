"""Programs of PyTorch as modules: an exported program, TorchScript; loaded from a file, or as they were returned."""

from __future__ import annotations

import inspect
import logging
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError, did_you_mean
from onnxbuild.onnxkit.sessions.open import first_line
from onnxbuild.onnxkit.sources.outline import FORM

if TYPE_CHECKING:
    import torch


EXPORTED, TORCHSCRIPT = "exported", "torchscript"
"""Forms of a file, as `model` names them."""

_CLASSES = {EXPORTED: "ExportedProgram", TORCHSCRIPT: "TorchScript"}
"""Form -> class name of its modules, in messages."""

SUBMODULE, MADE_BY = "submodule", "made_by"
"""Facts of a model's file, in `Entrypoint.args`."""

_LOAD_FAILURES = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NotImplementedError, OSError,
    RuntimeError, TypeError, ValueError, zipfile.BadZipFile,
)  # fmt: skip
"""Exceptions of torch.jit.load and torch.export.load for damaged files, or another version's."""

_IS_TRAINING = ("train", "training")
"""Arguments of operators that are true in training mode."""


def module_of_program(made: object, where: str) -> torch.nn.Module | None:
    """A ScriptModule or an ExportedProgram as a module that takes its inputs by name; None for others.

    Raises:
        StepError: It takes something else than tensors.
    """
    import torch

    if isinstance(made, torch.jit.ScriptModule):
        return _scripted(made, where)
    if isinstance(made, torch.export.ExportedProgram):
        return _exported(made, where)
    return None


def load_program(path: Path, name: str, facts: Mapping[str, Any], where: str) -> torch.nn.Module:
    """Load a program as a module that takes its inputs by name.

    Args:
        path: A .pt2 or a TorchScript archive. Both hold code, which runs.
        name: How messages call it.
        facts: FORM, MADE_BY, and SUBMODULE of TorchScript.
        where: `recipe:step`, for messages.

    Raises:
        StepError: PyTorch can't load it, or it takes something else than tensors.
    """
    import torch

    is_exported = facts[FORM] == EXPORTED
    try:
        made = _load_exported(path) if is_exported else _load_torchscript(path)
    except _LOAD_FAILURES as error:
        made_by = f" (made by {facts[MADE_BY]})" if facts[MADE_BY] else ""
        raise StepError(
            f"PyTorch {torch.__version__} can't load {name}{made_by}: {_said(error)}",
            where=where,
            fix="save it again with this version of PyTorch, on a CPU; a file of a later version can't be read",
        ) from error
    if is_exported:
        return _exported(made, where)
    return _scripted(_part(made, str(facts[SUBMODULE]), name, where), where)


def _load_torchscript(path: Path) -> Any:
    import torch

    with warnings.catch_warnings(
        action="ignore", category=DeprecationWarning
    ):  # TorchScript itself
        return torch.jit.load(str(path), map_location="cpu")


def _load_exported(path: Path) -> Any:
    import torch

    logger = logging.getLogger("torch.export")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # a traceback of each reader that it tries
    try:
        with path.open("rb") as file:  # of a path it insists on the suffix .pt2
            return torch.export.load(file)
    finally:
        logger.setLevel(level)


def _said(error: Exception) -> str:
    """PyTorch's own sentence, without its guesses at how the file came to be so."""
    return first_line(error).partition(" This is an internal miniz error")[0]


def _part(whole: Any, submodule: str, name: str, where: str) -> Any:
    """The submodule at a dotted path; the whole where that is empty."""
    parts = dict(whole.named_modules())
    if submodule in parts:
        return parts[submodule]
    known = [path for path in parts if path]
    raise StepError(
        f"{name} has no submodule '{submodule}'",
        where=where,
        fix=did_you_mean(submodule, known) or f"it has {', '.join(known[:8]) or 'none'}",
    )


def training_operators(module: torch.nn.Module) -> tuple[str, ...]:
    """Operators of an exported program that were exported in training mode, which nothing can change."""
    import torch

    program = getattr(module, EXPORTED, None)
    if not isinstance(program, torch.fx.GraphModule):
        return ()
    found = set()
    for node in program.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if node.op != "call_function" or schema is None:
            continue
        names = [each.name for each in schema.arguments]
        values = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
        share = values.get("dropout", values.get("p"))
        if share != 0 and any(values.get(key) is True for key in _IS_TRAINING):
            found.add(schema.name.removeprefix("aten::"))
    return tuple(sorted(found))


def is_scripted(module: torch.nn.Module) -> bool:
    """Return whether TorchScript is anywhere in a module: torch.export can't follow all of it."""
    import torch

    return any(isinstance(each, torch.jit.ScriptModule) for each in module.modules())


def scripted_in(module: torch.nn.Module) -> Any:
    """The ScriptModule that a module of this file's calls; None for other modules."""
    return (
        getattr(module, TORCHSCRIPT, None)
        if type(module).__name__ == _CLASSES[TORCHSCRIPT]
        else None
    )


def _scripted(program: Any, where: str) -> torch.nn.Module:
    """TorchScript with a signature that Python can read.

    Raises:
        StepError: It requires something else than tensors.
    """
    arguments = {}
    for each in program.forward.schema.arguments[1:]:
        is_tensor = each.type.kind() == "TensorType" or each.type.str() == "Tensor?"
        if not is_tensor and not each.has_default_value():
            raise StepError(
                f"forward of the TorchScript takes '{each.name}', of the type {each.type}; a recipe feeds tensors",
                where=where,
                fix="name a part that takes tensors alone (`submodule: NAME` next to `torchscript`), or write a "
                f"callable that returns a module which loads it and passes '{each.name}' on",
            )
        if is_tensor:
            arguments[each.name] = each.has_default_value()

    def call(given: Mapping[str, Any]) -> Any:
        return program(**given)

    return _named(program, TORCHSCRIPT, arguments, call)


def _exported(program: Any, where: str) -> torch.nn.Module:
    """An exported program, whose own module takes arguments as torch.export was given them.

    Raises:
        StepError: It takes tensors in containers.
    """
    positional, keywords = program.call_spec.in_spec.children()
    parts = (*positional.children(), *keywords.children())
    if not all(each.is_leaf() for each in parts):
        raise StepError(
            "the exported program takes tensors in a list, tuple or dict; a recipe feeds tensors by name",
            where=where,
            fix="export a wrapper again whose forward takes each tensor as an argument of its own",
        )
    split = positional.num_children
    taken = [each.arg for each in program.graph_signature.input_specs if "USER" in each.kind.name]
    made = program.module()

    def call(given: Mapping[str, Any]) -> Any:
        values = [given[e.name] if e.name in given else e.value for e in taken]  # noqa: SIM401 - no dict
        return made(*values[:split], **dict(zip(keywords.context, values[split:], strict=True)))

    tensors = {each.name: False for each in taken if not hasattr(each, "value")}
    return _named(made, EXPORTED, tensors, call)


def _named(
    program: Any, attribute: str, arguments: Mapping[str, bool], call: Callable[..., Any]
) -> torch.nn.Module:
    """A module that takes a program's inputs by name.

    Args:
        attribute: Its name in the module.
        arguments: Name -> whether it has a default.
        call: Takes name -> tensor.
    """
    import torch

    class Program(torch.nn.Module):  # type: ignore[misc] # torch is Any here
        """Calls the program."""

        def __init__(self) -> None:
            super().__init__()
            self.add_module(attribute, program)
            self.forward = forward

        def train(self, mode: bool = True) -> Any:  # noqa: FBT001, FBT002 - torch's own signature
            """Leave an exported program as it is: it has no modes."""
            return self if attribute == EXPORTED else super().train(mode)

        def requires_grad_(self, requires_grad: bool = True) -> Any:  # noqa: FBT001, FBT002 - the same
            """Set it for each tensor: a ScriptModule lacks the method."""
            for each in self.parameters():
                each.requires_grad_(requires_grad)
            return self

    def forward(*args: Any, **inputs: Any) -> Any:
        return call({**dict(zip(arguments, args, strict=False)), **inputs})

    forward.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
            if optional
            else inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
            for name, optional in arguments.items()
        ]
    )
    Program.__name__ = Program.__qualname__ = _CLASSES[attribute]
    return Program()
