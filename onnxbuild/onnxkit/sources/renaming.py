"""Names of a model's inputs and outputs in a recipe, where `rename` may give them others; and its opset."""

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from onnxbuild.core.errors import did_you_mean
from onnxbuild.core.recipe import INPUT_NAME, OPSET_MAX, OPSET_MIN
from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.sources.outline import SourceOutline, SourceValue
from onnxbuild.onnxkit.sources.parts import nearest

RENAME = "rename"
"""Key next to a model's file, and fact of it for the steps: the model's names -> the recipe's."""

RENAME_HELP = "the model's names of inputs and outputs -> those of the recipe"

_NO_TENSORS = ("sequence", "map", "optional", "sparse tensor")


def renamed_outline(
    outline: SourceOutline, rename: Mapping[str, str], written: Mapping[str, Any]
) -> SourceOutline:
    """The outline under the recipe's names; `rename` is one of its facts.

    The recipe's `outputs` go by position where these are as many other names.

    Args:
        outline: The model's, of ONNX or of what is converted to it.
        rename: Its names of inputs and outputs -> the recipe's.
        written: The recipe as it is written, rendered; values may be anything.

    Raises:
        SourceError: The model can't be declared, or the recipe names what it has not.
    """
    rename = _with_outputs(outline.outputs, rename, written)
    outputs = [rename.get(value.name, value.name) for value in outline.outputs]
    _check_names(outline, rename, outputs, written)
    _check_outputs(outline, outputs, written)
    for value in outline.inputs:
        if value.dtype in _NO_TENSORS:
            raise SourceError(
                f"input '{value.name}' is a {value.dtype}; a recipe feeds tensors",
                "convert the model again with tensors as inputs (skl2onnx: `options={'zipmap': False}`)",
            )

    def named(values: Sequence[SourceValue]) -> tuple[SourceValue, ...]:
        return tuple(replace(each, name=rename.get(each.name, each.name)) for each in values)

    _check_opset(outline, written)
    return replace(
        outline,
        inputs=named(outline.inputs),
        outputs=named(outline.outputs),
        facts={**outline.facts, RENAME: rename},
    )


def _with_outputs(
    outputs: Sequence[SourceValue], rename: Mapping[str, str], written: Mapping[str, Any]
) -> dict[str, str]:
    """Return `rename` with the recipe's `outputs` where these are as many other names: they go by position.

    A name that is near to one of the model's is a misspelled one.
    """
    chosen = written.get("outputs")
    names = [rename.get(each.name, each.name) for each in outputs]
    if not isinstance(chosen, list) or len(chosen) != len(names):
        return dict(rename)
    if any(name in names or did_you_mean(str(name), names) for name in chosen):
        return dict(rename)
    by_place = {each.name: str(new) for each, new in zip(outputs, chosen, strict=True)}
    return {**rename, **by_place}


def _check_opset(outline: SourceOutline, written: Mapping[str, Any]) -> None:
    if outline.opset > OPSET_MAX:
        raise SourceError(
            f"the model has opset {outline.opset}; expected at most {OPSET_MAX}",
            f"convert it again with opset {OPSET_MAX} or an earlier one",
        )
    if outline.opset < OPSET_MIN and "opset" not in written:
        raise SourceError(
            f"the model has opset {outline.opset}; expected at least {OPSET_MIN}",
            "write `opset: 18`: the model is raised to it, and held against what it computes now",
            mend={"opset": 18},
        )
    wanted = written.get("opset")
    if type(wanted) is int and wanted < outline.opset:
        raise SourceError(
            f"opset is {wanted}, and the model has opset {outline.opset}; it can be raised, not lowered",
            f"write `opset: {outline.opset}` or greater, or remove it",
            "opset",
        )


def _check_names(
    outline: SourceOutline,
    rename: Mapping[str, str],
    outputs: list[str],
    written: Mapping[str, Any],
) -> None:
    theirs = [value.name for value in (*outline.inputs, *outline.outputs)]
    if "" in theirs:
        place = theirs.index("")
        count = len(outline.inputs)
        which = f"input {place}" if place < count else f"output {place - count}"
        raise SourceError(
            f"{which} of the model has no name (counted from 0), so that nothing can feed or read it",
            "convert the model again, or name it where it was made",
        )
    for name in rename:
        if name not in theirs:
            raise SourceError(
                f"`rename` names '{name}', which is neither an input nor an output of the model",
                nearest(name, theirs),
                "model", "rename", name,
            )  # fmt: skip
    _check_apart(outline.inputs, rename)
    _check_apart(outline.outputs, rename)
    inputs = [rename.get(value.name, value.name) for value in outline.inputs]
    if not inputs:
        raise SourceError("the model takes no inputs", "name a model that does")
    for value, name in zip(outline.inputs, inputs, strict=True):
        if not re.search(INPUT_NAME, name):
            better = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "x"
            raise SourceError(
                f"the model's input is called '{name}', which can be no name in a recipe",
                f'write `rename: {{"{value.name}": {better}}}` in `model`',
                mend={"model": {"rename": {value.name: better}}},
            )
    chosen = written.get("outputs")
    _check_output_names(outputs if chosen is None else chosen, outline, rename)
    for name in chosen if isinstance(chosen, list) else ():
        if name not in outputs:
            raise SourceError(
                f"the model has no output '{name}'", nearest(str(name), outputs), "outputs"
            )


def _check_apart(values: Sequence[SourceValue], rename: Mapping[str, str]) -> None:
    """Check that the recipe's names of inputs, or of outputs, differ.

    Raises:
        SourceError: `rename` gives two of them one name.
    """
    first: dict[str, str] = {}
    for name in dict.fromkeys(value.name for value in values):
        new = rename.get(name, name)
        other = first.setdefault(new, name)
        if other != name:
            renamed = name if name in rename else other
            raise SourceError(
                f"with `rename`, '{other}' and '{name}' of the model are both called '{new}'",
                "give each a name of its own",
                "model", "rename", renamed,
            )  # fmt: skip


def _check_output_names(chosen: object, outline: SourceOutline, rename: Mapping[str, str]) -> None:
    """Check that a recipe can name the outputs that it takes.

    Raises:
        SourceError: One has a blank in its name.
    """
    called = {value.name: rename.get(value.name, value.name) for value in outline.outputs}
    taken = chosen if isinstance(chosen, list) else []
    blank = [old for old, name in called.items() if name in taken and re.search(r"\s", name)]
    if not blank:
        return
    used = {name for old, name in called.items() if old not in blank}
    better: dict[str, str] = {}
    for old in blank:
        stem = re.sub(r"\W+", "_", called[old]).strip("_") or "output"
        free = (stem if n == 1 else f"{stem}_{n}" for n in itertools.count(1))
        better[old] = next(each for each in free if each not in used)
        used.add(better[old])
    pairs = ", ".join(f"{json.dumps(old)}: {new}" for old, new in better.items())
    raise SourceError(
        f"the model's output is called '{called[blank[0]]}', which has a blank and can be no name in a recipe",
        f"write `rename: {{{pairs}}}` in `model`",
        mend={"model": {"rename": better}},
    )


def _check_outputs(outline: SourceOutline, outputs: list[str], written: Mapping[str, Any]) -> None:
    """Check that the outputs that the recipe takes are tensors.

    Raises:
        SourceError: One is not.
    """
    chosen = written.get("outputs")
    tensors = [
        name
        for name, value in zip(outputs, outline.outputs, strict=True)
        if value.dtype not in _NO_TENSORS
    ]
    for name, value in zip(outputs, outline.outputs, strict=True):
        if name not in tensors and (not isinstance(chosen, list) or name in chosen):
            instead = f"write `outputs: [{', '.join(tensors)}]`, or " if tensors else ""
            raise SourceError(
                f"output '{name}' is a {value.dtype}; outputs are tensors",
                f"{instead}convert the model again (skl2onnx: `options={{'zipmap': False}}`)",
            )
