"""Draft of a recipe for a torch.nn.Module: names by forward's signature, shapes guessed by its layers and tried."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from onnxbuild.core.draft import Draft
from onnxbuild.core.recipe import INPUT_NAME
from onnxbuild.onnxkit.drafts.torch_guesses import (
    BATCH,
    PAST,
    SEQUENCE,
    Guess,
    given_guesses,
    layer_guesses,
    named_guesses,
)
from onnxbuild.onnxkit.modules.inference import eager
from onnxbuild.onnxkit.modules.program_modules import (
    MADE_BY,
    SUBMODULE,
    TORCHSCRIPT,
    load_program,
    module_of_program,
)
from onnxbuild.onnxkit.sources.outline import FORM

if TYPE_CHECKING:
    import torch


_AXES = {
    BATCH: {"min": 1, "max": 8, "example": 2},
    SEQUENCE: {"min": 1, "max": 64, "example": 16},
    PAST: {"min": 1, "max": 64, "example": 8},
}

_FURTHER = f"_{SEQUENCE}"
"""End of the names of further lengths, see `_own_lengths`."""

_FURTHER_AXIS = {"min": 1, "max": 64, "example": 12}

_SIZES = (
    {BATCH: 2, SEQUENCE: 16, PAST: 4, _FURTHER: 5},
    {BATCH: 3, SEQUENCE: 7, PAST: 9, _FURTHER: 11},
)
"""Sizes that a guess must run at. They differ in every axis, so that a size that is baked in fails."""

_TRIALS_MAX, _PER_INPUT_MAX = 60, 12

_TENSOR_TYPES = {
    "FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16",
    "LongTensor": "int64", "IntTensor": "int32", "BoolTensor": "bool", "ByteTensor": "uint8",
}  # fmt: skip

_MASK_RANK = 2

MASKS = re.compile(r"(.*_)?mask")

_UNKNOWN = Guess("float32", (BATCH, 1), "nothing says what it takes", sure=False)


@dataclass(frozen=True, slots=True)
class Outputs:
    """Outputs that forward returned.

    Attributes:
        names: Names of the outputs.
        keyed: Whether the names are forward's own.
        others: Names of values that are no tensors, such as a cache, each with its type.
    """

    names: list[str]
    keyed: bool
    others: tuple[str, ...] = ()

    @property
    def about(self) -> str:
        """Return the comment of a recipe on them."""
        said = "what forward returned" if self.keyed else "forward gives them no names: choose"
        left_out = f", without {', '.join(self.others)}, which is no tensor" if self.others else ""
        return said + left_out


def draft_of_module(model: object) -> Draft | None:
    """Return the draft of a module's recipe; None if the model is no module.

    Shapes are guesses by the module's first layers; the first that forward runs with is taken.
    """
    import torch

    if isinstance(model, torch.jit.ScriptModule):
        model = module_of_program(model, "")
    if not isinstance(model, torch.nn.Module):
        return None
    module = in_eval(model)
    names = _taken(module)
    candidates = [_candidates(module, name) for name in names]
    for guesses in itertools.islice(_combined(candidates), _TRIALS_MAX):
        chosen = dict(zip(names, guesses, strict=True))
        outputs = _outputs_of(module, chosen)
        if outputs is not None:
            return _known(_own_lengths(module, chosen), outputs)
    first = {name: (each or [_UNKNOWN])[0] for name, each in zip(names, candidates, strict=True)}
    return _unknown(module, first)


def in_eval(model: torch.nn.Module) -> torch.nn.Module:
    """Return the module that a build runs, in eval mode."""
    module = eager(model)
    module.eval()  # its result is None where a `train` of the user's own returns nothing
    return module


def _combined(candidates: Sequence[Sequence[Guess]]) -> Iterator[tuple[Guess, ...]]:
    """Yield guesses for all inputs; those of one layer for all of them come first."""
    alike = set(map(tuple, candidates))
    if len(alike) == 1:
        yield from ((each,) * len(candidates) for each in next(iter(alike)))
    yield from itertools.product(*candidates)


def _own_lengths(module: torch.nn.Module, chosen: Mapping[str, Guess]) -> dict[str, Guess]:
    """Give inputs a length of their own where forward runs with one: a decoder's `encoder_...` are as long as they like.

    Inputs whose names begin with the same word go together. The first ones keep theirs, and masks alone do not
    tell: one that forward leaves unread may have any length.
    """
    groups: dict[str, list[str]] = {}
    for name, guess in chosen.items():
        if SEQUENCE in guess.shape:
            groups.setdefault(name.partition("_")[0], []).append(name)
    found = dict(chosen)
    for word, names in [*groups.items()][1:]:
        if all(map(MASKS.fullmatch, names)):
            continue
        own = {name: _with_length(found[name], f"{word}{_FURTHER}") for name in names}
        if _outputs_of(module, {**found, **own}) is not None:
            found |= own
    return found


def _with_length(guess: Guess, axis: str) -> Guess:
    shape = tuple(axis if each == SEQUENCE else each for each in guess.shape)
    return replace(guess, shape=shape)


def _taken(module: torch.nn.Module) -> list[str]:
    """Names of what forward must be given; of what it can be given, where nothing is required."""
    parameters = inspect.signature(module.forward).parameters
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    named = {name: each for name, each in parameters.items() if each.kind in kinds}
    required = [name for name, each in named.items() if each.default is inspect.Parameter.empty]
    if required:
        return required
    given = [name for name in given_guesses(module) if name in named]
    main = getattr(module, "main_input_name", None)  # of transformers
    first = [main] if main in named else list(named)[:1]
    masks = [name for name in ("attention_mask",) if name in named and given]
    return given or [*first, *masks]


def _candidates(module: torch.nn.Module, name: str) -> list[Guess]:
    given = given_guesses(module).get(name)
    if given is not None:
        return [given]
    annotated = _annotated(module, name)
    if annotated is not None and len(annotated.shape) > 0:
        return [annotated]
    named = list(dict.fromkeys(named_guesses(module, name)))
    if named and annotated is None:
        return named[:_PER_INPUT_MAX]
    layers = list(dict.fromkeys(layer_guesses(module)))
    if annotated is not None:
        plain = [Guess(annotated.dtype, (BATCH, SEQUENCE), annotated.because, sure=False)]
        return [each for each in layers if each.dtype == annotated.dtype][:_PER_INPUT_MAX] or plain
    if MASKS.fullmatch(name):
        return [Guess(dtype, (BATCH, SEQUENCE), "its name") for dtype in ("int64", "bool")]
    seen: dict[tuple[Any, ...], Guess] = {}
    for each in layers:
        seen.setdefault((each.dtype, each.shape, each.high), each)
    return list(seen.values())[:_PER_INPUT_MAX]


def _annotated(module: torch.nn.Module, name: str) -> Guess | None:
    """Guess by a parameter's annotation: `torch.LongTensor`, or `Annotated[Tensor, "batch 3 224 224"]`."""
    try:
        signature = inspect.signature(module.forward, eval_str=True)
    except (NameError, SyntaxError, TypeError):  # names that are there for type checkers alone
        signature = inspect.signature(module.forward)
    annotation = signature.parameters[name].annotation
    shown = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    dtype = next((d for kind, d in _TENSOR_TYPES.items() if shown.endswith(kind)), "")
    texts = [each for each in get_args(annotation)[1:] if isinstance(each, str)]
    texts += [str(annotation.dim_str)] if hasattr(annotation, "dim_str") else []  # of jaxtyping
    if texts:
        words = texts[0].replace(",", " ").split()
        if words and all(word.isdecimal() or word.isidentifier() for word in words):
            shape = tuple(int(word) if word.isdecimal() else word for word in words)
            return Guess(dtype or "float32", shape, "its annotation")
    return Guess(dtype, (), "its type") if dtype else None


def _outputs_of(module: torch.nn.Module, guesses: Mapping[str, Guess]) -> Outputs | None:
    """The outputs, where forward runs with these inputs at all sizes; None where it does not."""
    import torch

    found = None
    for sizes in _SIZES:
        try:
            with torch.no_grad():
                value = module(**{name: _tensor(each, sizes) for name, each in guesses.items()})
            found = outputs_in(value, guesses)
        except Exception:  # noqa: BLE001 - any failure says that the guess is wrong
            return None
        if found is None:
            return None
    return found


def outputs_in(value: object, inputs: Iterable[str]) -> Outputs | None:
    """Return the outputs in what forward returned; None if there are none.

    Raises:
        StepError: They can't be named.
    """
    from onnxbuild.onnxkit.modules.module_outputs import (
        has_keys,
        named_outputs,
        tensors_and_others,
    )

    keyed = has_keys(value)
    others: dict[str, object] = {}
    if keyed:
        names, others = tensors_and_others(value, tuple(inputs))
    else:
        names = list(named_outputs(value, inputs=tuple(inputs)))
    if not names:
        return None
    shown = tuple(f"{name} ({type(each).__name__})" for name, each in others.items())
    return Outputs(names if keyed or len(names) > 1 else ["output"], keyed, shown)


def _tensor(guess: Guess, sizes: Mapping[str, int]) -> torch.Tensor:
    import torch

    shape = [each if isinstance(each, int) else _size_of(each, sizes) for each in guess.shape]
    dtype = getattr(torch, guess.dtype)
    if dtype.is_floating_point:
        return torch.randn(shape, dtype=torch.float32).to(dtype)
    if guess.high:
        return torch.randint(0, guess.high, shape, dtype=dtype)
    return torch.ones(shape, dtype=dtype)


def _size_of(axis: str, sizes: Mapping[str, int]) -> int:
    return sizes.get(axis, sizes[_FURTHER] if axis.endswith(_FURTHER) else 2)


def _known(chosen: Mapping[str, Guess], outputs: Outputs) -> Draft:
    comments = {}
    for name, guess in chosen.items():
        tried = "forward ran with it at two sizes of each axis"
        picked = "" if guess.sure else f"; {_picked(guess)}"
        comments[f"dummy_inputs.{name}"] = f"{guess.because}; {tried}{picked}"
    comments["outputs"] = outputs.about
    return Draft(_recipe(chosen, outputs.names), comments)


def _picked(guess: Guess) -> str:
    sizes = " x ".join(map(str, guess.shape[2:]))
    return f"{sizes} is the first size tried that ran: write your own"


def _recipe(chosen: Mapping[str, Guess], outputs: list[str]) -> dict[str, Any]:
    symbols = dict.fromkeys(each for guess in chosen.values() for each in guess.shape)
    axes = {each: _axis_of(each) for each in symbols if isinstance(each, str)}
    inputs = {name: _declared(name, guess) for name, guess in chosen.items()}
    return {
        "dummy_inputs": inputs,
        **({"outputs": outputs} if outputs else {}),
        **({"dynamic_axes": axes} if axes else {}),
    }


def _axis_of(name: str) -> Mapping[str, int]:
    return _AXES.get(name, _FURTHER_AXIS if name.endswith(_FURTHER) else _AXES[BATCH])


def _declared(name: str, guess: Guess) -> dict[str, Any]:
    is_row = len(guess.shape) == _MASK_RANK and str(guess.shape[1]).endswith(SEQUENCE)
    is_mask = MASKS.fullmatch(name) and guess.shape[0] == BATCH and is_row
    if not is_mask or guess.dtype.startswith("float"):
        return guess.declared()
    return {"dtype": guess.dtype, "shape": list(guess.shape), "mask": "right"}


def _unknown(module: torch.nn.Module, first: Mapping[str, Guess]) -> Draft:
    inputs = {name: each for name, each in first.items() if re.fullmatch(INPUT_NAME, name)}
    shown = f"{type(module).__name__}.forward"
    holes = {
        f"dummy_inputs.{name}": f"what {shown} takes as `{name}`, such as "
        f"`{name}: {{dtype: float32, shape: [batch, 3, 224, 224]}}`; "
        f"the guess ({each.because}) did not run"
        for name, each in inputs.items()
    }
    return Draft(_recipe(inputs, []), holes=holes)


def draft_of_torchscript(path: Path, submodule: str) -> Draft | None:
    """The inputs that an archive's program runs with, or marks where none of the guesses did.

    Args:
        path: The archive. It holds code, which runs.
        submodule: The part of it; empty for the whole.

    Raises:
        StepError: PyTorch can't load it, or it takes something else than tensors.
    """
    facts = {FORM: TORCHSCRIPT, SUBMODULE: submodule, MADE_BY: ""}
    return draft_of_module(load_program(path, path.name, facts, path.name))
