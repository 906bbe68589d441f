"""Recipe keys that an ONNX file declares: dummy inputs, dynamic axes, outputs and opset."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from onnxbuild.core.axis import is_sum, symbols_of
from onnxbuild.core.errors import did_you_mean
from onnxbuild.core.recipe import DTYPES, INPUT_NAME, OPSET_MAX, OPSET_MIN
from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.data.completed_axes import BATCH, completed_axes, mapping_in, sizes_in
from onnxbuild.onnxkit.ready_onnx.axis_names import AxisNames
from onnxbuild.onnxkit.ready_onnx.outline import Outline, OutlinedValue

_NO_TENSORS = ("sequence", "map", "optional", "sparse tensor")


def recipe_of(
    outline: Outline, rename: Mapping[str, str], written: Mapping[str, Any]
) -> dict[str, Any]:
    """The keys of a recipe that a model's file says: `dummy_inputs`, `dynamic_axes`, `outputs`, `opset`.

    Args:
        outline: The model's.
        rename: Its names of inputs and outputs -> the recipe's.
        written: The recipe as it is written, rendered; values may be anything.

    Raises:
        SourceError: The model can't be declared, or the recipe names what it has not.
    """
    outputs = [rename.get(value.name, value.name) for value in outline.outputs]
    _check_names(outline, rename, outputs, written)
    _check_outputs(outline, outputs, written)
    inputs = declared_inputs(outline, rename)
    own = mapping_in(written, "dummy_inputs")
    _leave_out_lost_sums(inputs, own)
    shapes = []
    for name, each in inputs.items():
        shape = mapping_in(own, name).get("shape", each.get("shape"))
        if shape is None:
            raise SourceError(
                f"the model does not say how many dimensions input '{name}' has",
                f"write `dummy_inputs: {{{name}: {{shape: [batch, ...]}}}}`",
                mend={"dummy_inputs": {name: {"shape": [BATCH]}}},
            )
        shapes.append(sizes_in(shape))
    axes = completed_axes(shapes, mapping_in(written, "dynamic_axes"))
    found: dict[str, Any] = {
        "dummy_inputs": inputs,
        "outputs": outputs,
        "opset": _opset(outline, written),
    }
    return {**found, **({"dynamic_axes": axes} if axes else {})}


def renamed(
    outputs: Sequence[OutlinedValue], rename: Mapping[str, str], written: Mapping[str, Any]
) -> dict[str, str]:
    """Return `rename` with the recipe's `outputs` where these are as many other names: they go by position.

    A name that is near to one of the model's is a misspelled one.

    Args:
        outputs: The model's.
        rename: The model's names of inputs and outputs -> the recipe's.
        written: The recipe as it is written, rendered; values may be anything.
    """
    chosen = written.get("outputs")
    names = [rename.get(each.name, each.name) for each in outputs]
    if not isinstance(chosen, list) or len(chosen) != len(names):
        return dict(rename)
    if any(name in names or did_you_mean(str(name), names) for name in chosen):
        return dict(rename)
    by_place = {each.name: str(new) for each, new in zip(outputs, chosen, strict=True)}
    return {**rename, **by_place}


def _opset(outline: Outline, written: Mapping[str, Any]) -> int:
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
    return outline.opset


def _check_names(
    outline: Outline, rename: Mapping[str, str], outputs: list[str], written: Mapping[str, Any]
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
                _nearest(name, theirs),
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
    for name in mapping_in(written, "dummy_inputs"):
        if name not in inputs:
            raise SourceError(
                f"the model has no input '{name}'", _nearest(name, inputs), "dummy_inputs", name
            )
    chosen = written.get("outputs")
    _check_output_names(outputs if chosen is None else chosen, outline, rename)
    for name in chosen if isinstance(chosen, list) else ():
        if name not in outputs:
            raise SourceError(
                f"the model has no output '{name}'", _nearest(str(name), outputs), "outputs"
            )


def _check_apart(values: Sequence[OutlinedValue], rename: Mapping[str, str]) -> None:
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


def _check_output_names(chosen: object, outline: Outline, rename: Mapping[str, str]) -> None:
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


def _check_outputs(outline: Outline, outputs: list[str], written: Mapping[str, Any]) -> None:
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


def _nearest(name: str, known: list[str]) -> str:
    near = did_you_mean(name, known)
    return f"{near} " + f"it has {', '.join(known)}" if near else f"it has {', '.join(known)}"


def declared_inputs(outline: Outline, rename: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """A recipe's `dummy_inputs`: name -> dtype, shape, and for indices of a table its rows as `high`.

    An axis keeps its name where that is one of the user's; the first axis of each input is `batch`
    where it has none. A sum of axes that inputs have by themselves stays that sum.

    Args:
        outline: The model's.
        rename: Its names -> the recipe's.

    Raises:
        SourceError: An input is no tensor, or of a type or rank that no recipe can declare.
    """
    axes = AxisNames(outline.inputs)
    for value in outline.inputs:
        axes.learn(value, rename.get(value.name, value.name))
    found = {}
    for value in outline.inputs:
        name = rename.get(value.name, value.name)
        _check(value)
        shape = None if value.shape is None else axes.shape(value, name)
        found[name] = {
            "dtype": value.dtype,
            **({} if shape is None else {"shape": shape}),
            **({"low": 0, "high": value.table} if value.table else {}),
        }
    return found


def _leave_out_lost_sums(inputs: dict[str, dict[str, Any]], own: Mapping[str, Any]) -> None:
    """Give a sum a name of its own if the recipe's own shapes leave no input with one of its axes alone, in place."""
    left = {
        name: each["shape"]
        for name, each in inputs.items()
        if "shape" in each and "shape" not in mapping_in(own, name)
    }
    shapes = [*left.values(), *(sizes_in(mapping_in(own, name).get("shape")) for name in inputs)]
    alone = {size for shape in shapes for size in shape if not is_sum(size)}
    for name, shape in left.items():
        stem = re.sub(r"[^A-Za-z0-9_]", "_", name)
        for n, size in enumerate(shape):
            if is_sum(size) and not alone.issuperset(symbols_of(size)):
                shape[n] = f"{stem}_{n}"


def _check(value: OutlinedValue) -> None:
    if value.dtype in _NO_TENSORS:
        raise SourceError(
            f"input '{value.name}' is a {value.dtype}; a recipe feeds tensors",
            "convert the model again with tensors as inputs (skl2onnx: `options={'zipmap': False}`)",
        )
    if value.dtype not in DTYPES:
        raise SourceError(
            f"input '{value.name}' has the type {value.dtype}; expected one of {', '.join(DTYPES)}",
            "convert the model again with another type of input",
        )
