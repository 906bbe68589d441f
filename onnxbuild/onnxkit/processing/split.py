"""Cut a merged pipeline where its model begins and ends, by the names that `merge` gives to nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.graphs import names_read
from onnxbuild.onnxkit.processing.merge import INSIDE
from onnxbuild.onnxkit.processing.values import POSTPROCESS, PREPROCESS

if TYPE_CHECKING:
    import onnx


class CutError(ValueError):
    """A pipeline whose operations can't be separated from its model's nodes."""


@dataclass(frozen=True, slots=True)
class SplitPipeline:
    """A pipeline in parts; names of values are those of the merged graph.

    Attributes:
        before: From raw inputs to the model's; None where there is no preprocessing.
        behind: From the model's values to results; None where there is no postprocessing.
        inputs: Input of the model -> value of the merged graph.
        outputs: Output of the model -> value of the merged graph.
    """

    before: onnx.ModelProto | None
    behind: onnx.ModelProto | None
    inputs: dict[str, str]
    outputs: dict[str, str]


def split(merged: onnx.ModelProto, model: onnx.ModelProto) -> SplitPipeline:
    """Return the parts of a pipeline around its model.

    Args:
        merged: What `merge` made.
        model: That it was made of; its weights need not be loaded.

    Raises:
        CutError: Nodes of the model have names like those of operations.
    """
    made = {name for node in merged.graph.node for name in node.output}
    there = made | {each.name for each in merged.graph.input}
    inputs, outputs = (
        {each.name: _inside(each.name, there) for each in values}
        for values in (model.graph.input, model.graph.output)
    )
    values = {inputs[each.name]: each for each in model.graph.input}
    values |= {outputs[each.name]: each for each in model.graph.output}
    values |= {each.name: each for each in (*merged.graph.input, *merged.graph.output)}
    before, behind = (_part(merged, section, values) for section in (PREPROCESS, POSTPROCESS))
    return SplitPipeline(before, behind, inputs, outputs)


def _inside(name: str, there: set[str]) -> str:
    return f"{INSIDE}{name}" if f"{INSIDE}{name}" in there else name


def _part(
    merged: onnx.ModelProto, section: str, values: dict[str, onnx.ValueInfoProto]
) -> onnx.ModelProto | None:
    """The operations of a section as a model; None where there is none."""
    import onnx

    graph = merged.graph
    own = [node for node in graph.node if node.name.startswith(f"{section}/")]
    if not own:
        return None
    made = {name for node in own for name in node.output}
    read = {name for node in own for name in names_read(node)}
    elsewhere = {
        name
        for node in graph.node
        if not node.name.startswith(f"{section}/")
        for name in names_read(node)
    } | {each.name for each in graph.output}
    constants = [each for each in graph.initializer if each.name in read]
    taken = read - made - {each.name for each in constants}
    given = made & elsewhere
    if unknown := (taken | given) - values.keys():
        what = f"'{min(unknown)}' goes from {section} to the model's nodes, and is none of its inputs and outputs"
        raise CutError(what)
    part = onnx.ModelProto(ir_version=merged.ir_version)
    part.opset_import.extend(merged.opset_import)
    part.graph.name = section
    part.graph.node.extend(own)
    part.graph.initializer.extend(constants)
    for field, names in ((part.graph.input, taken), (part.graph.output, given)):
        for name, value in values.items():
            if name in names:
                named = onnx.ValueInfoProto()
                named.CopyFrom(value)
                named.name = name
                field.append(named)
    canonicalize(part)
    return part
