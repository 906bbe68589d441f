"""PyTorch's two ONNX exporters behind one signature, quiet, with their errors in one line each."""

from __future__ import annotations

import contextlib
import io
import math
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.user_code import line_of
from onnxbuild.onnxkit.export.errors import explain_export
from onnxbuild.onnxkit.export.exportable_forms import grouped_experts, scanned_recurrences
from onnxbuild.onnxkit.export.names import settle_names
from onnxbuild.onnxkit.export.stable_translations import (
    dynamo_translations,
    torchscript_translations,
)
from onnxbuild.onnxkit.export.torch_module import run_module, without_fast_path
from onnxbuild.onnxkit.export.torch_wrapping import (
    WRAPPED,
    dimension_spellings,
    dynamic_shapes,
    example_tensors,
    flattening_wrapper,
    quiet,
    restricted_axes,
    trace_remarks,
    without_output,
)
from onnxbuild.onnxkit.frameworks import onnx
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.graphs import all_graphs
from onnxbuild.onnxkit.model.opsets import OpsetError
from onnxbuild.onnxkit.model.raised_opset import raise_opset
from onnxbuild.onnxkit.model.shapes import spell_dimensions
from onnxbuild.onnxkit.modules.program_modules import is_scripted
from onnxbuild.onnxkit.modules.stateful_module import INNER, is_stateful
from onnxbuild.onnxkit.operators.opaque_nodes import OpaqueNode, dynamo_nodes, torchscript_nodes

if TYPE_CHECKING:
    import onnx_ir
    import torch


EXPORTERS = ("dynamo", "torchscript")

_OPERATORS = {"ScatterND", "GatherND"}

_INDICES = 1
"""Their input of indices, in both."""

_INT32, _INT64 = 6, 7
"""TensorProto's."""

_PHASES: Mapping[str, str] = {
    "Obtain model graph": "dynamo: tracing",
    "Run decompositions": "dynamo: decomposing",
    "Translate the graph": "dynamo: translating to ONNX",
    "Optimize the ONNX graph": "dynamo: optimizing",
}
"""Beginning of a line that the exporter prints -> the phase that starts there."""

_MARK, _ENDED = "[torch.onnx] ", ("✅", "❌")

_SMALL_BYTES = 1024
"""Results up to this size are folded whatever they are made of, as in `optimize`."""

_FOLDED_TO_BYTES = 4
"""Bytes of an element of float32, which TorchScript's folding turns narrower weights into."""


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """Request to an exporter: module, inputs and options.

    Attributes:
        feeds: Example inputs, one for each of `inputs`.
        output_names: Names of the outputs, in their order; see `named_outputs`.
        translations: PyTorch operator -> onnxscript function(s), for the dynamo exporter.
        scratch: A folder for the exporter's own files.
        where: `recipe:step`, for messages.
        with_lines: Whether nodes say which lines of the module they come from, whichever exporter it is.
        opaque: PyTorch operators that become one node each.
    """

    module: torch.nn.Module
    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]
    feeds: Feeds
    output_names: tuple[str, ...]
    opset: int
    constant_folding: bool
    translations: Mapping[Any, Any]
    scratch: Path
    where: str
    with_lines: bool = False
    opaque: tuple[OpaqueNode, ...] = ()


def export_graph(
    exporter: str, request: ExportRequest, restricted: dict[str, int] | None = None
) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    """Export with one of EXPORTERS.

    Args:
        restricted: Gets the axes that the exporter answers for up to a size only; see `restricted_axes`.

    Returns: The model as the exporter made it but for the names, and remarks for the user.

    Raises:
        StepError: The exporter gave up; names the operator or the axis where it can.
    """
    import torch

    wrapper = _wrapper(request)
    export = _export_dynamo if exporter == "dynamo" else _export_torchscript
    # torch documents OnnxExporterError but lets these through as well
    failures = (
        torch.onnx.OnnxExporterError, torch.jit.TracingCheckError, ArithmeticError,
        AssertionError, AttributeError, ImportError, LookupError, NotImplementedError,
        RuntimeError, TypeError, ValueError,
    )  # fmt: skip
    notes: set[str] = set()

    def line_of(operator: str) -> str:
        return line_of_operator(request.module, request.feeds, operator)

    try:
        with (
            quiet() as caught,
            grouped_experts(wrapper, notes),
            torch.no_grad(),
            without_fast_path(),
        ):
            model = export(wrapper, request, notes, {} if restricted is None else restricted)
    except failures as error:
        explained = explain_export(error, exporter, request.opset, request.where, line_of)
        if isinstance(explained, OpsetError):
            raise _tried_at_least(exporter, wrapper, request, explained, failures) from error
        raise explained from error
    names = [each.name for each in request.inputs]
    final = dict(zip(_safe_names("input", len(names)), names, strict=True))
    names = list(request.output_names)
    final |= zip(_safe_names("output", len(names)), names, strict=True)
    settle_names(model, final, WRAPPED)
    if is_stateful(request.module):
        settle_names(model, {}, INNER)
    spell_dimensions(model, dimension_spellings(request.inputs, request.axes))
    return model, (*trace_remarks(caught), *sorted(notes))


def _tried_at_least(
    exporter: str,
    wrapper: torch.nn.Module,
    request: ExportRequest,
    explained: OpsetError,
    failures: tuple[type[Exception], ...],
) -> StepError:
    """Export at the opset that an error names: another operator may need a later one, or have none."""
    import torch

    export = _export_dynamo if exporter == "dynamo" else _export_torchscript
    while True:
        try:
            with quiet(), grouped_experts(wrapper, set()), torch.no_grad(), without_fast_path():
                export(wrapper, replace(request, opset=explained.least), set(), {})
        except failures as error:
            again = explain_export(error, exporter, explained.least, request.where)
            if not isinstance(again, OpsetError):
                return again
            explained = OpsetError(again.what, where=again.where, least=again.least)
        else:
            return explained


def explain_specialization(request: ExportRequest) -> str:
    """torch.export's own line on why an axis can't be dynamic; empty where it has nothing to say."""
    import torch

    shapes = (dynamic_shapes(request.inputs, request.axes),)
    try:
        with (
            quiet(),
            scanned_recurrences(request.module, set()),
            torch.no_grad(),
            without_fast_path(),
        ):
            torch.export.export(
                _wrapper(request),
                example_tensors(request.inputs, request.feeds),
                dynamic_shapes=shapes,
                strict=False,
            )
    except (RuntimeError, ValueError, TypeError, AssertionError) as error:
        lines = [line.strip() for line in str(error).splitlines()]
        said = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
        return said[0].split(". If you're")[0] if said else ""
    return ""


def _wrapper(request: ExportRequest) -> torch.nn.Module:
    return flattening_wrapper(request.module, request.inputs, request.output_names, request.where)


def _export_dynamo(
    wrapper: torch.nn.Module, request: ExportRequest, notes: set[str], restricted: dict[str, int]
) -> onnx.ModelProto:
    import torch

    phase("dynamo: tracing")
    printed = contextlib.redirect_stdout(PrintedPhases())
    with scanned_recurrences(wrapper, notes), printed:
        program = torch.onnx.export(
            wrapper,
            example_tensors(request.inputs, request.feeds),
            dynamic_shapes=(dynamic_shapes(request.inputs, request.axes),),
            input_names=_safe_names("input", len(request.inputs)),
            output_names=_safe_names("output", len(request.output_names)),
            opset_version=request.opset,
            custom_translation_table={
                **dynamo_translations(request.opset, notes),
                **dynamo_nodes(request.opaque),
                **request.translations,
            },
            dynamo=True,
            optimize=False,
            verbose=True,
        )
        if request.constant_folding:
            phase("dynamo: folding constants")
            optimize_graph(program.model)
    if program.exported_program is not None:
        restricted |= restricted_axes(program.exported_program, request.inputs, request.axes)
    model = program.model_proto
    widen_indices(model)
    return model


_TORCHSCRIPT_MOST = 23
"""The last opset that PyTorch's TorchScript exporter takes (torch.onnx._constants); ONNX's converter goes on from there."""


def _export_torchscript(
    wrapper: torch.nn.Module, request: ExportRequest, notes: set[str], _restricted: dict[str, int]
) -> onnx.ModelProto:
    import torch

    phase("torchscript: tracing and translating to ONNX")
    asked, request = request, replace(request, opset=min(request.opset, _TORCHSCRIPT_MOST))
    axes = {
        safe: {n: name for n, name in enumerate(each.shape) if isinstance(name, str)}
        for safe, each in zip(
            _safe_names("input", len(request.inputs)), request.inputs, strict=True
        )
    }
    file = request.scratch / "torchscript.onnx"  # beyond 2 GB the exporter needs a folder
    discarded = without_output() if request.with_lines else contextlib.nullcontext()
    examples = example_tensors(request.inputs, request.feeds)
    if is_scripted(
        wrapper
    ):  # the exporter's own trace takes no ScriptModule inside of another module
        wrapper = torch.jit.trace(wrapper, examples, check_trace=False)
    opaque = torchscript_nodes(request.opaque, request.opset)
    with torchscript_translations(request.opset, notes), opaque, discarded:
        torch.onnx.export(
            wrapper,
            examples,
            str(file),
            input_names=_safe_names("input", len(request.inputs)),
            output_names=_safe_names("output", len(request.output_names)),
            dynamic_axes={name: dims for name, dims in axes.items() if dims},
            opset_version=request.opset,
            do_constant_folding=request.constant_folding and not has_narrow_weights(wrapper),
            keep_initializers_as_inputs=False,
            custom_opsets={each.domain: each.version for each in request.opaque},
            dynamo=False,
            verbose=request.with_lines,
        )
    return raise_opset(onnx.load(str(file)), asked.opset, request.where)


def _safe_names(kind: str, count: int) -> list[str]:
    """Names that no value inside can have.

    With torch 2.13's dynamo exporter an output called `embedding` collides with the value of the
    node of that name, and the graph is no longer in SSA form.
    """
    return [f"onnxbuild::{kind}_{n}" for n in range(count)]


def widen_indices(model: onnx.ModelProto) -> None:
    """Cast indices of 32 bits to 64 where an operator takes no others, in place.

    Args:
        model: Its values' types are known: dynamo writes them down.
    """
    for graph in all_graphs(model):
        narrow = {each.name for each in graph.initializer if each.data_type == _INT32} | {
            each.name
            for field in (graph.input, graph.value_info)
            for each in field
            if each.type.tensor_type.elem_type == _INT32
        }
        nodes = []
        cast: dict[str, str] = {}
        for node in graph.node:
            name = node.input[_INDICES] if node.op_type in _OPERATORS else ""
            if name in narrow:
                if name not in cast:
                    cast[name] = f"{name}_int64"
                    nodes.append(onnx.helper.make_node("Cast", [name], [cast[name]], to=_INT64))
                node.input[_INDICES] = cast[name]
            nodes.append(node)
        if cast:
            kept = [onnx.NodeProto.FromString(each.SerializeToString()) for each in nodes]
            del graph.node[:]
            graph.node.extend(kept)


class PrintedPhases(io.TextIOBase):
    """Takes what the exporter prints with `verbose=True`; keeps nothing of it."""

    def __init__(self) -> None:
        super().__init__()
        self._begun = ""

    def writable(self) -> bool:
        """Return True: it takes text."""
        return True

    def write(self, text: str) -> int:
        """Take text; each line that says what begins is passed on as a phase."""
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            if line.startswith(_MARK) and not line.endswith(_ENDED):
                said = line.removeprefix(_MARK)
                for start, words in _PHASES.items():
                    if said.startswith(start):
                        phase(words)
        return len(text)


def optimize_graph(model: onnx_ir.Model) -> None:
    """Do what `torch.onnx.export(optimize=True)` does after dynamo's export, in place."""
    from onnxscript.optimizer import optimize_ir
    from onnxscript.rewriter import onnx_fusions

    optimize_ir(model, should_fold=_should_fold)
    onnx_fusions.fuse(model)


def has_narrow_weights(module: torch.nn.Module) -> bool:
    """Return whether a module holds more than a few weights in fewer than 32 bits, masks aside.

    TorchScript's folding has no limit: it would write them out in 32 bits.
    """
    import itertools

    import torch

    state = itertools.chain(module.parameters(), module.buffers())
    narrow = (
        each.numel() * each.element_size()
        for each in state
        if each.element_size() < _FOLDED_TO_BYTES and each.dtype != torch.bool
    )
    return bool(sum(narrow) > _SMALL_BYTES)


def _should_fold(node: onnx_ir.Node) -> bool | None:
    """Return False for a node whose result is larger than its inputs; None leaves it to onnxscript's own rules."""
    made = sum(_bytes(each) for each in node.outputs)
    given = (each.const_value for each in node.inputs if each is not None)
    inputs = sum(each.nbytes for each in given if each is not None)
    return False if made > max(_SMALL_BYTES, inputs) else None


def _bytes(value: onnx_ir.Value) -> int:
    """The bytes of a value; 0 where its type or shape is not known."""
    if value.shape is None or value.dtype is None or not value.shape.is_static():
        return 0
    return math.ceil(math.prod(value.shape.numpy()) * value.dtype.itemsize)


def line_of_operator(module: torch.nn.Module, feeds: Feeds, operator: str) -> str:
    """`models/mine.py:7`: the user's line that first calls an operator; empty where none is seen.

    Args:
        module: Module whose forward is run and watched.
        feeds: Feeds that it runs on.
        operator: An exporter's name of it: `aten::histc`, `prims.bessel_j0`.
    """
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    wanted = _bare(operator)
    lines: list[str] = []

    def look(name: str) -> None:
        if _bare(name) == wanted and not lines:
            lines.append(line_of(traceback.extract_stack(), sys.path))

    class Functions(TorchFunctionMode):  # type: ignore[misc] # torch is Any here
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            look(getattr(func, "__name__", ""))
            return func(*args, **(kwargs or {}))

    class Operators(TorchDispatchMode):  # type: ignore[misc] # torch is Any here
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            look(str(func.overloadpacket))
            return func(*args, **(kwargs or {}))

    try:
        with torch.no_grad(), Functions(), Operators():
            run_module(module, feeds)
    except (StepError, RuntimeError):
        return ""
    return lines[0] if lines else ""


def _bare(operator: str) -> str:
    """`aten::_adaptive_avg_pool2d` -> `adaptive_avg_pool2d`."""
    last = operator.replace("::", ".").split(".")
    name = last[1] if len(last) > 1 else last[0]
    return name.strip("_").removeprefix("special_")
