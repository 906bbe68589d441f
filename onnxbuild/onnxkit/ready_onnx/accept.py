"""Accept a model that another tool made: the recipe's names and sizes, canonical form, tried at several sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.digest import canonical_json
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.core.step import REPORT_FILE, Finding, Outcome, StepContext
from onnxbuild.onnxkit.export.agreement import unsteadiness
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.graphs import all_nodes, opset_of
from onnxbuild.onnxkit.model.interface import interface_faults, unused_inputs
from onnxbuild.onnxkit.model.model_files import file_bytes, save_model
from onnxbuild.onnxkit.model.opsets import checker_faults
from onnxbuild.onnxkit.model.shapes import drop_false_shapes, has_shape, has_type, infer_again
from onnxbuild.onnxkit.ready_onnx.adapt import adapt, fixed_sizes
from onnxbuild.onnxkit.ready_onnx.probes import load_named
from onnxbuild.onnxkit.sessions.open import REFUSED, check_loads

if TYPE_CHECKING:
    from pathlib import Path

    import onnx


_SHOWN = 3
"""Names in a note."""

_DRAW = {
    "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
}  # fmt: skip

_DRAWN_SHOWN = 3

_TRAINING_INPUTS = 3
"""Inputs of a Dropout with a flag that says whether it trains."""


def accept(
    context: StepContext,
    model: onnx.ModelProto,
    shown: str,
    *,
    inputs: Sequence[DummyInput],
    outputs: Sequence[str],
    axes: Sequence[Axis],
    rename: Mapping[str, str],
    later_opset: str = "write `opset: {opset}`",
) -> Outcome:
    """Write a model into the outputs `model` and `config`, as the recipe declares it.

    Args:
        shown: How messages call it.
        inputs: What the recipe declares.
        outputs: Names in order; empty takes the model's.
        rename: The model's names of inputs and outputs -> the recipe's.
        later_opset: As `checker_faults` takes it.

    Raises:
        StepError: It is not as declared, or not valid, or it fails at a size that the recipe allows.
    """

    def checked(path: Path) -> list[Finding]:
        return checker_faults(path, context.scratch, later_opset=later_opset)

    def refuse(faults: Sequence[Finding]) -> None:
        for first in faults:
            where = f"{context.where}, {first.where}"
            raise StepError(f"{shown}: {first.what}", where=where, fix=first.fix)

    folder = context.output("model")
    has_shapes = True
    fixed = fixed_sizes(model, inputs, rename)
    adapt(model, inputs, outputs, rename, context.where)
    again = [] if all(map(has_type, model.graph.output)) else infer_again(model)
    _refuse_sequences(model, shown, context.where)
    canonicalize(model)
    drop_false_shapes(model)
    faults = interface_faults(model, inputs, outputs, None)
    remarks = [f"input '{name}' is not used by the graph" for name in unused_inputs(model)]
    opset = opset_of(model)
    draft = context.scratch / "draft"
    save_model(model, draft)
    if not faults and (faults := checked(draft)) and (mended := infer_again(model)):
        again += mended
        draft = context.scratch / "inferred-again"
        save_model(model, draft)
        has_shapes = all(map(has_shape, model.graph.output))
        faults = checked(draft) if has_shapes else []  # the others get theirs from the runs
    refuse(faults)
    if again:
        remarks.append(_inferred(shown, again))
    try:
        phase("running it at several sizes")
        model = load_named(draft, inputs, axes, context.where)
        save_model(model, folder)
        refuse(checked(folder) if not has_shapes else [])
        check_loads(folder, context.where)
        notes = [*remarks, *random_notes(model, folder, inputs, axes, context.where)]
    except StepError as error:
        raise _with_fixed_sizes(error, fixed) from error
    (context.output("config") / REPORT_FILE).write_bytes(canonical_json({}))
    return Outcome({"opset": opset, "size_bytes": file_bytes(folder)}, notes=tuple(notes))


def _inferred(shown: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (
        f"{shown} leaves out types or shapes of values, or contradicts its own operators: they are inferred again for "
        f"{', '.join(names[:_SHOWN])}{more}"
    )


def _with_fixed_sizes(error: StepError, fixed: Mapping[str, int]) -> StepError:
    """An error in whose fix the sizes are named that the recipe alone fixes, if ONNX Runtime refuses them.

    It infers the shapes of all branches of an `If`, and refuses a model if one can't take a size, whether
    that branch would ever run or not.
    """
    if not fixed or REFUSED not in error.what:
        return error
    size = next(iter(fixed.values()))
    named = " and ".join(f"{each} of '{name}'" for name, each in fixed.items())
    return StepError(
        error.what,
        where=error.where,
        fix=f"the recipe fixes {named}, which the model leaves open, and a branch of it may not take that; "
        f"write an axis in its place: `dynamic_axes: {{size: {{min: {size}, max: {size}, example: {size}}}}}`",
    )


def _refuse_sequences(model: onnx.ModelProto, shown: str, where: str) -> None:
    """Check that all outputs are tensors.

    Raises:
        StepError: One is not.
    """
    for value in model.graph.output:
        if not value.type.HasField("tensor_type"):
            kind = str(value.type.WhichOneof("value")).removesuffix("_type").replace("_", " ")
            raise StepError(
                f"{shown}: output '{value.name}' is a {kind}; outputs are tensors",
                where=where,
                fix="leave it out of `outputs`, or convert the model again (skl2onnx: "
                "`options={'zipmap': False}`)",
            )


def random_notes(
    model: onnx.ModelProto,
    folder: Path,
    inputs: Sequence[DummyInput],
    axes: Sequence[Axis],
    where: str,
) -> list[str]:
    """Return a note if a model gives other outputs at a second run, by nodes that draw random values.

    Args:
        model: Its weights need not be loaded.
        inputs: As the recipe declares them.
        where: `recipe:step`.

    Raises:
        StepError: It fails.
    """
    nodes = [node.name for node in all_nodes(model) if _may_draw(node)]
    if not nodes:
        return []
    reason = unsteadiness(folder, inputs, axes, where)
    if not reason:
        return []
    shown = ", ".join(f"'{name}'" for name in nodes[:_DRAWN_SHOWN])
    more = f" and {len(nodes) - _DRAWN_SHOWN} more" if len(nodes) > _DRAWN_SHOWN else ""
    note = (
        f"the model gives other outputs at each run, so no variant can be compared with it: {reason}; it draws "
        f"random values at {shown}{more}: convert it again in evaluation mode, or give these nodes a `seed`"
    )
    return [note]


def _may_draw(node: onnx.NodeProto) -> bool:
    """Return whether a node may give other values at each run: a seed makes those of all sessions alike."""
    if node.op_type == "Dropout":
        return len(node.input) == _TRAINING_INPUTS and bool(node.input[2])
    return node.op_type in _DRAW and all(each.name != "seed" for each in node.attribute)
