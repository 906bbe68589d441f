"""Recipe keys that an archive of Keras declares: `dummy_inputs` and names of outputs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from onnxbuild.core.errors import did_you_mean
from onnxbuild.core.recipe import DTYPES, INPUT_NAME
from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.data.completed_axes import BATCH
from onnxbuild.onnxkit.keras_models.archive import KerasOutline


def names_of(outline: KerasOutline) -> tuple[str, ...]:
    """Names of the inputs in a recipe, in their order."""
    return tuple(
        each.name if re.search(INPUT_NAME, each.name) else _identifier(each.name)
        for each in outline.inputs
    )


def declared_inputs(outline: KerasOutline, own: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """`dummy_inputs` of a recipe, but for what it writes itself.

    Args:
        outline: The model's.
        own: `dummy_inputs` as they are written; values may be anything.

    Raises:
        SourceError: The recipe names an input that there is none of, or a type or a size is one that
            can't be.
    """
    names = names_of(outline)
    for name in own:
        if name not in names:
            near = did_you_mean(name, names)
            has = f"it has {', '.join(names)}"
            raise SourceError(
                f"the model has no input '{name}'",
                f"{near} {has}" if near else has,
                "dummy_inputs",
                str(name),
            )
    found: dict[str, dict[str, Any]] = {}
    for name, each in zip(names, outline.inputs, strict=True):
        if each.dtype not in DTYPES or each.dtype == "string":
            raise SourceError(
                f"input '{each.name}' has the type {each.dtype}; PyTorch, which runs the model, has no such tensors",
                "save a model without its preprocessing layers, which takes numbers",
            )
        written = own.get(name)
        shape = written.get("shape") if isinstance(written, Mapping) else None
        if isinstance(shape, list):
            _fit(name, shape, each.shape)
        else:
            shape = [_axis(name, n, size) for n, size in enumerate(each.shape)]
        _refuse_unrolled(outline, name, shape, each.shape)
        found[name] = {
            "dtype": each.dtype,
            "shape": shape,
            **({"low": 0, "high": each.table} if each.table else {}),
        }
    return found


def chosen_outputs(outline: KerasOutline, written: Any) -> tuple[list[str], bool]:
    """(`outputs` of the recipe, whether they go by the model's own names); else they go by position."""
    names = list(outline.outputs)
    if not isinstance(written, list) or not written:
        return names, True
    return names, all(each in names for each in written)


def _identifier(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")
    return plain if plain[:1].isalpha() else f"input_{plain}".strip("_")


def _axis(name: str, n: int, size: int | None) -> int | str:
    if size is not None:
        return size
    return BATCH if n == 0 else f"{re.sub(r'[^A-Za-z0-9_]', '_', name)}_{n}"


def _fit(name: str, shape: Sequence[Any], theirs: Sequence[int | None]) -> None:
    key = ("dummy_inputs", name, "shape")
    if len(shape) != len(theirs):
        raise SourceError(
            f"input '{name}' of the model has {len(theirs)} dimensions; the recipe has {len(shape)}",
            "remove `shape`: the model says it",
            *key,
        )
    for n, (size, fixed) in enumerate(zip(shape, theirs, strict=True)):
        if fixed is not None and size != fixed:
            raise SourceError(
                f"the model has the size {fixed} along axis {n} of input '{name}'; the recipe has {size}",
                f"write {fixed}",
                *key,
            )


def _refuse_unrolled(
    outline: KerasOutline, name: str, shape: Sequence[Any], theirs: Sequence[int | None]
) -> None:
    """Keras on PyTorch runs a recurrent layer as a loop, whose number of turns an export fixes."""
    for n, size in enumerate(shape[1:], 1):
        if outline.recurrent and isinstance(size, str):
            sizes = [16 if m == n else each for m, each in enumerate(shape)]
            what = f"axis {n} of input '{name}'"
            whole = ", ".join(map(str, sizes))
            raise SourceError(
                f"layer '{outline.recurrent}' is recurrent: an export fixes its number of steps, and "
                f"{what} is {'dynamic' if theirs[n] is None else size}",
                f"write a number there: `dummy_inputs: {{{name}: {{shape: [{whole}]}}}}`",
                "dummy_inputs",
                name,
                "shape",
                mend={"dummy_inputs": {name: {"shape": sizes}}},
            )
