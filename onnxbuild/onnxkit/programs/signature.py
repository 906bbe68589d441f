"""Programs that were made elsewhere: how each is called, found out and held to a recipe's inputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError, did_you_mean
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.programs.artifact_file import (
    ProgramDescription,
    ProgramFormat,
    describe_inputs,
)
from onnxbuild.onnxkit.programs.programs import PROGRAM_ERRORS, load_program

if TYPE_CHECKING:
    import torch


_FIX = "compare models of the same inputs, or name the recipe that fits this one"

Shape = Sequence[int | str | None]


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
    is_named = set(signature.names) == set(declared)
    if len(signature.names) != len(declared) or (signature.by_keyword and not is_named):
        raise _other_inputs(name, signature.names, tuple(declared))
    names = signature.names if is_named else tuple(declared)
    check_inputs(name, dict(zip(names, signature.inputs, strict=False)), inputs)
    return ProgramDescription(
        found, describe_inputs([declared[each] for each in names]), (), signature.by_keyword
    )


def check_inputs(
    name: str,
    found: Mapping[str, tuple[str, Shape | None]],
    inputs: Sequence[DummyInput],
    *,
    narrowed: Collection[tuple[str, str]] = (),
) -> None:
    """Hold the inputs of a model from elsewhere to a recipe's.

    Args:
        name: As the user named it, for messages.
        found: Input of the model -> dtype and shape, None for what it does not say; those that it leaves out are not checked.
        inputs: What the recipe feeds.
        narrowed: (The recipe's dtype, the model's) that are fed all the same.

    Raises:
        StepError: One has another type or shape.
    """
    for each in inputs:
        dtype, shape = found.get(each.name, (each.dtype, None))
        if dtype != each.dtype and (each.dtype, dtype) not in narrowed:
            what = f"input '{each.name}' of {name} is {dtype}; the recipe feeds {each.dtype}"
            raise StepError(what, where=name, fix=_FIX)
        fits = shape is None or (
            len(shape) == len(each.shape)
            and all(
                not isinstance(own, int) or not isinstance(other, int) or own == other
                for own, other in zip(shape, each.shape, strict=True)
            )
        )
        if not fits:
            shown = ", ".join("any" if n is None else str(n) for n in shape or ())
            fed = ", ".join(map(str, each.shape))
            raise StepError(
                f"input '{each.name}' of {name} has the shape [{shown}]; the recipe feeds [{fed}]",
                where=name,
                fix=_FIX,
            )


def check_names(name: str, found: Sequence[str], inputs: Sequence[DummyInput]) -> None:
    """See that a model from elsewhere takes the inputs that a recipe feeds.

    Raises:
        StepError: It takes others; names one that is spelled alike.
    """
    declared = tuple(each.name for each in inputs)
    if set(found) != set(declared):
        raise _other_inputs(name, found, declared)


def _other_inputs(name: str, found: Sequence[str], declared: Sequence[str]) -> StepError:
    missing = [each for each in declared if each not in found]
    hints = (did_you_mean(each, missing) for each in found if each not in declared)
    return StepError(
        f"{name} takes {', '.join(found) or 'no inputs'}; the recipe feeds {', '.join(declared)}",
        where=name,
        fix=next(filter(None, hints), _FIX),
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
