"""Errors of a graph that is not as declared, with the line at which an exporter froze a size: exports at two sets of sizes differ there first."""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from traceback import FrameSummary
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.core.step import Finding
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.user_code import line_of
from onnxbuild.onnxkit.export.exporters import ExportRequest, explain_specialization, export_graph
from onnxbuild.onnxkit.model.interface import FIXED_AXIS_FIX

if TYPE_CHECKING:
    import onnx

    from onnxbuild.onnxkit.export.export_check import Probes


_COMPARED_ELEMENTS = 64
"""Constants of more are compared by their shapes: sizes come in short lists."""

_DYNAMO_TRACE = "pkg.torch.onnx.stack_trace"

_DYNAMO_FRAME = re.compile(r'File "([^"]+)", line (\d+)')

_TORCHSCRIPT_FRAME = re.compile(r"^(.+)\((\d+)\): ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ExportedNode:
    """One node of an export, as it is compared.

    Attributes:
        operator: Its type.
        signature: Digest of its type, its attributes, and the constants that it reads.
        line: The user's line that it comes from; empty where that is not known.
    """

    operator: str
    signature: str
    line: str


def exported_nodes(model: onnx.ModelProto) -> tuple[ExportedNode, ...]:
    """The nodes of the main graph, constants apart; before `canonicalize` takes the lines away."""
    constants = dict(_constants(model.graph))
    return tuple(
        ExportedNode(node.op_type, _signature(node, constants), _line(node))
        for node in model.graph.node
        if node.op_type != "Constant"
    )


def baked_node(
    exporter: str, request: ExportRequest, nodes: Sequence[ExportedNode], others: Sequence[Feeds]
) -> ExportedNode | None:
    """The first node that exports at two sets of sizes do not share, with its line; None for none.

    Args:
        exporter: Exporter that made `nodes`.
        request: Request of that export.
        nodes: Nodes of that export.
        others: Feeds of other sizes to export with.
    """
    for feeds in others:
        try:
            model, _ = export_graph(exporter, replace(request, feeds=feeds, with_lines=True))
        except StepError:
            continue
        found = exported_nodes(model)
        for node in (*_missing(nodes, found), *_missing(found, nodes)):
            if node.line:  # none has what the exporter itself adds
                return node
    return None


def _missing(nodes: Sequence[ExportedNode], others: Sequence[ExportedNode]) -> list[ExportedNode]:
    """Return the nodes that have no counterpart among the others, in their order."""
    left = Counter(each.signature for each in others)
    left.subtract(each.signature for each in nodes)
    return [each for each in nodes if left[each.signature] < 0]


def _signature(node: onnx.NodeProto, constants: Mapping[str, str]) -> str:
    read = [constants.get(name, "") for name in node.input]
    attributes = sorted(
        (each.name, _attribute(each)) for each in node.attribute if not each.HasField("g")
    )
    return repr((node.domain, node.op_type, read, attributes))


def _attribute(attribute: onnx.AttributeProto) -> str:
    if attribute.HasField("t"):
        return _tensor(attribute.t)
    return repr((attribute.type, attribute.i, attribute.f, attribute.s, list(attribute.ints)))


def _constants(graph: onnx.GraphProto) -> Iterator[tuple[str, str]]:
    for tensor in graph.initializer:
        yield tensor.name, _tensor(tensor)
    for node in graph.node:
        if node.op_type == "Constant":
            yield node.output[0], repr([_attribute(each) for each in node.attribute])


def _tensor(tensor: onnx.TensorProto) -> str:
    from onnx import numpy_helper

    elements = 1
    for size in tensor.dims:
        elements *= size
    if elements > _COMPARED_ELEMENTS or tensor.external_data:
        return repr((tensor.data_type, list(tensor.dims)))
    array = numpy_helper.to_array(tensor)
    return repr((array.shape, hashlib.sha256(array.tobytes()).hexdigest()))


def _line(node: onnx.NodeProto) -> str:
    """The innermost of the user's own lines in what the exporter says of a node's origin."""
    trace = next((each.value for each in node.metadata_props if each.key == _DYNAMO_TRACE), "")
    frames = _DYNAMO_FRAME.findall(trace)
    if not frames:
        frames = _TORCHSCRIPT_FRAME.findall(node.doc_string)[::-1]  # innermost first
    placed = [FrameSummary(file, int(n), "") for file, n in frames if Path(file).is_absolute()]
    return line_of(placed, sys.path)


def at_frozen_line(
    error: StepError,
    exporter: str,
    request: ExportRequest,
    probes: Probes,
    nodes: Sequence[ExportedNode],
) -> StepError:
    """The error with the line of the module at which the exporter froze a size, if it did.

    Args:
        error: Error from the graph.
        exporter: Exporter that made the graph.
        request: Request of that export.
        probes: Gives other sizes to export with.
    """
    if not request.axes:
        return error
    others = [run.feeds for run in probes.runs[1 : 2 if exporter == "dynamo" else 3]]
    node = baked_node(exporter, request, nodes, others)
    if node is None:
        return error
    what = f"{error.what}; {node.line} was exported for one size alone ({node.operator})"
    return StepError(what, where=node.line, fix=error.fix)


def unsound_error(fault: Finding, exporter: str, where: str) -> StepError:
    """The error for a graph that ONNX's checker refuses: the exporter made it so, and no model is delivered."""
    return StepError(
        f"the {exporter} exporter's graph is no sound ONNX: {fault.where}: {fault.what}",
        where=where,
        fix="write what that node comes from in other operators, or give it a translation "
        "(`export: {translations: FILE.py:CALLABLE}`)",
    )


def as_declared_error(fault: Finding, exporter: str, request: ExportRequest) -> StepError:
    """The error for a graph whose inputs, outputs or axes are not as the recipe declares them."""
    said = ""
    if fault.fix == FIXED_AXIS_FIX and exporter == "dynamo":
        said = explain_specialization(request)
    return StepError(
        f"the {exporter} exporter's graph is not as declared: {fault.where}: {fault.what}"
        + (f" (torch: {said})" if said else ""),
        where=request.where,
        fix=fault.fix,
    )
