"""Errors for a wrong graph of an exporter, with torch's message and the user's line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.core.step import Finding
from onnxbuild.onnxkit.export.exporters import ExportRequest, explain_specialization
from onnxbuild.onnxkit.model.interface import FIXED_AXIS_FIX

if TYPE_CHECKING:
    from onnxbuild.onnxkit.export.baked_lines import ExportedNode
    from onnxbuild.onnxkit.export.export_check import Probes


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
        nodes: The graph's.
    """
    from onnxbuild.onnxkit.export.baked_lines import baked_node

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
