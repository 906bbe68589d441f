"""Check a graph's interface: names, dtypes, exactly the declared axes dynamic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onnxbuild.core.errors import did_you_mean
from onnxbuild.core.recipe import DummyInput
from onnxbuild.core.step import Finding
from onnxbuild.onnxkit.model.graphs import names_read, opset_of
from onnxbuild.onnxkit.model.inspect import dimensions, dtype_name

if TYPE_CHECKING:
    import onnx

FIXED_AXIS_FIX = (
    "read sizes from the tensors in forward (x.shape[0]) instead of numbers, or declare the size "
    "as a number in `dummy_inputs`"
)


def interface_faults(
    model: onnx.ModelProto, inputs: Sequence[DummyInput], outputs: Sequence[str], opset: int | None
) -> list[Finding]:
    """List where a model is not what the recipe declares.

    float16 is accepted where float32 is declared: a variant may narrow its inputs.

    Args:
        model: Its weights need not be loaded.
        inputs: Names, dtypes and shapes; each symbol must be dynamic under its own name.
        outputs: Names in order; empty takes any.
        opset: The default domain's exact version; None takes any.
    """
    faults = _opset_faults(model, opset)
    values = {value.name: value for value in model.graph.input}
    declared = {each.name for each in inputs}
    for name in values:
        if name not in declared:
            faults.append(
                Finding(
                    f"the graph takes an input '{name}' that `dummy_inputs` does not declare",
                    where=f"input '{name}'",
                    fix=did_you_mean(name, declared) or f"add '{name}' to `dummy_inputs`",
                )
            )
    for each in inputs:
        if each.name in values:
            faults += _input_faults(each, values[each.name])
        else:
            faults.append(
                Finding(
                    f"the graph has no input '{each.name}'; it takes "
                    f"{', '.join(values) or 'none'}",
                    where=f"input '{each.name}'",
                    fix=f"forward does not use '{each.name}' (or the exporter folded it away): "
                    "take it out of `dummy_inputs`",
                )
            )
    found = [value.name for value in model.graph.output]
    if outputs and found != list(outputs):
        faults.append(
            Finding(
                f"the graph's outputs are {', '.join(found)}; expected {', '.join(outputs)}",
                where="outputs",
                fix=f"write `outputs: [{', '.join(found)}]`",
            )
        )
    return faults


def unused_inputs(model: onnx.ModelProto) -> list[str]:
    """Graph inputs that no node reads and no output returns."""
    read = {value.name for value in model.graph.output}
    for node in model.graph.node:
        read |= names_read(node)
    return [value.name for value in model.graph.input if value.name not in read]


def _opset_faults(model: onnx.ModelProto, opset: int | None) -> list[Finding]:
    found = opset_of(model)
    if opset is None or found == opset:
        return []
    return [
        Finding(
            f"the graph has opset {found}; expected {opset}",
            where="opset",
            fix=f"write `opset: {found}`",
        )
    ]


def _input_faults(each: DummyInput, value: onnx.ValueInfoProto) -> list[Finding]:
    where = f"input '{each.name}'"
    faults = []
    dtype = dtype_name(value.type.tensor_type.elem_type)
    if dtype != each.dtype and (each.dtype, dtype) != ("float32", "float16"):
        fix = f"write `dtype: {dtype}`"
        faults.append(Finding(f"its dtype is {dtype}; expected {each.dtype}", where, fix))
    shape = dimensions(value)
    if shape is None or len(shape) != len(each.shape):
        shown = "unknown" if shape is None else f"{len(shape)}"
        what = f"its rank is {shown}; expected {len(each.shape)}"
        faults.append(Finding(what, where, _rank_fix(shape)))
        return faults
    for n, (want, found) in enumerate(zip(each.shape, shape, strict=True)):
        fault = _dimension_fault(n, want, found)
        if fault:
            faults.append(Finding(fault[0], where, fault[1]))
    return faults


def _rank_fix(shape: Sequence[int | str] | None) -> str:
    if shape is None:
        return "save the model with the shape of this input"
    sizes = (f"axis_{n}" if size == "?" else str(size) for n, size in enumerate(shape))
    return f"write `shape: [{', '.join(sizes)}]` in `dummy_inputs`"


def _dimension_fault(n: int, want: int | str, found: int | str) -> tuple[str, str] | None:
    """(what, fix), or None where the dimension is as declared."""
    if want == found:
        return None
    if isinstance(want, str) and isinstance(found, int):
        return f"axis '{want}' (dimension {n}) is fixed at {found} in the graph", FIXED_AXIS_FIX
    if isinstance(want, str):
        return (
            f"axis '{want}' (dimension {n}) is '{found}' in the graph, which takes both for one",
            f"use one symbol for both, or keep '{want}' apart in forward",
        )
    if isinstance(found, str):
        return (
            f"dimension {n} is dynamic ('{found}') in the graph; the recipe declares {want}",
            f"write a symbol in its place and declare it in `dynamic_axes`, or fix it at {want}",
        )
    return f"dimension {n} is {found} in the graph; the recipe declares {want}", f"write {found}"
