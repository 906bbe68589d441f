"""Programs that were made elsewhere: how each is called, found out and held to a recipe's inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.programs.artifact_file import (
    ProgramDescription,
    ProgramFormat,
    ProgramInput,
    describe_inputs,
)
from onnxbuild.onnxkit.programs.input_mismatch import nearest_input
from onnxbuild.onnxkit.programs.programs import PROGRAM_ERRORS, load_program

if TYPE_CHECKING:
    import torch

_FIX = "compare models of the same inputs, or name the recipe that fits this one"


@dataclass(frozen=True, slots=True)
class Signature:
    """Signature of a program: its arguments.

    Attributes:
        names: Of its arguments, in order; what a trace calls them means nothing.
        by_keyword: They are taken by name.
        inputs: dtype and shape of each, None for a size that is free; empty where it does not say.
    """

    names: tuple[str, ...]
    by_keyword: bool
    inputs: tuple[tuple[str, tuple[int | None, ...]], ...] = ()


def signature_of(path: Path, found: ProgramFormat, name: str) -> Signature:
    """Load a program and ask it.

    Args:
        path: The file.
        found: Its format.
        name: As the user named it, for messages.

    Raises:
        StepError: PyTorch can't load it, or it takes more than tensors.
    """
    return _SIGNATURES[found](path, name)


def described_as(
    signature: Signature, found: ProgramFormat, inputs: Sequence[DummyInput], name: str
) -> ProgramDescription:
    """Return how a program is called with a recipe's inputs; outputs have no names before it runs.

    Raises:
        StepError: It takes others.
    """
    declared = {each.name: each for each in inputs}
    names = signature.names if set(signature.names) == set(declared) else tuple(declared)
    if len(signature.names) != len(declared) or (
        signature.by_keyword and set(signature.names) != set(declared)
    ):
        raise _other_inputs(name, signature.names, tuple(declared))
    for described, each in zip(signature.inputs, names, strict=False):
        _check_input(name, declared[each], *described)
    return ProgramDescription(
        found, describe_inputs([declared[each] for each in names]), (), signature.by_keyword
    )


def check_description(
    description: ProgramDescription, inputs: Sequence[DummyInput], name: str
) -> None:
    """Hold what a bundle says of its program to a recipe's inputs.

    Raises:
        StepError: It takes others.
    """
    described = {each.name: each for each in description.inputs}
    declared = {each.name: each for each in inputs}
    if described.keys() != declared.keys():
        raise _other_inputs(name, tuple(described), tuple(declared))
    for each in inputs:
        found: ProgramInput = described[each.name]
        sizes = tuple(n if isinstance(n, int) else None for n in found.shape)
        _check_input(name, each, found.dtype, sizes)


def _other_inputs(name: str, found: Sequence[str], declared: Sequence[str]) -> StepError:
    return StepError(
        f"{name} takes {', '.join(found) or 'no inputs'}; the recipe feeds {', '.join(declared)}",
        where=name,
        fix=nearest_input(found, declared) or _FIX,
    )


def _check_input(
    name: str, declared: DummyInput, dtype: str, shape: tuple[int | None, ...]
) -> None:
    if dtype != declared.dtype:
        raise StepError(
            f"input '{declared.name}' of {name} is {dtype}; the recipe feeds {declared.dtype}",
            where=name,
            fix=_FIX,
        )
    fits = len(shape) == len(declared.shape) and all(
        own is None or not isinstance(other, int) or own == other
        for own, other in zip(shape, declared.shape, strict=True)
    )
    if not fits:
        shown = ", ".join("any" if n is None else str(n) for n in shape)
        raise StepError(
            f"input '{declared.name}' of {name} has the shape [{shown}]; the recipe feeds "
            f"{list(declared.shape)}",
            where=name,
            fix=_FIX,
        )


def _scripted(path: Path, name: str) -> Signature:
    call: Any = load_program(path, "torchscript", name)
    try:
        arguments = call.forward.schema.arguments[1:]  # the first is the module
    except PROGRAM_ERRORS as error:
        raise StepError(
            f"{name} has no method forward", where=name, fix="save a module that has one"
        ) from error
    needed = [each.name for each in arguments if not each.has_default_value()]
    return Signature(tuple(needed), by_keyword=False)


def _exported(path: Path, name: str) -> Signature:
    import torch

    program = _asked(lambda: torch.export.load(str(path)), name)
    names, by_keyword = _arguments(program.call_spec.in_spec, name)
    wanted = set(program.graph_signature.user_inputs)
    nodes = [each for each in program.graph.nodes if each.op == "placeholder"]
    values = [each.meta["val"] for each in nodes if each.name in wanted]
    described = tuple((_dtype(value), _sizes(value)) for value in values)
    own = tuple(each.name for each in nodes if each.name in wanted)
    return Signature(names if by_keyword else own, by_keyword, described)


def _packaged(path: Path, name: str) -> Signature:
    from torch.utils._pytree import treespec_loads

    call: Any = load_program(path, "aotinductor", name)
    spec = _asked(lambda: treespec_loads(call.loader.get_call_spec()[0]), name)
    return Signature(*_arguments(spec, name))


def _asked(ask: Callable[[], Any], name: str) -> Any:
    try:
        return ask()
    except (*PROGRAM_ERRORS, OSError) as error:
        first = str(error).partition("\n")[0]
        raise StepError(
            f"PyTorch can't read {name}: {type(error).__name__}: {first}",
            where=name,
            fix="make it with the PyTorch that is installed here",
        ) from error


def _arguments(spec: Any, name: str) -> tuple[tuple[str, ...], bool]:
    """(names, taken by keyword) of an exported program's arguments: (positional, named)."""
    positional, named = spec.children()
    count, keywords = positional.num_children, tuple(named.context or ())
    if spec.num_leaves != count + len(keywords) or (count and keywords):
        raise StepError(
            f"{name} takes nested arguments, or some by position and some by name",
            where=name,
            fix="export a module whose forward takes tensors alone, all in one way",
        )
    return (keywords, True) if keywords else (tuple(f"#{n}" for n in range(count)), False)


def _dtype(value: torch.Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")


def _sizes(value: torch.Tensor) -> tuple[int | None, ...]:
    return tuple(n if isinstance(n, int) else None for n in value.shape)


_SIGNATURES: Mapping[ProgramFormat, Callable[[Path, str], Signature]] = {
    "torchscript": _scripted,
    "torch-export": _exported,
    "aotinductor": _packaged,
}
