"""PyTorch's two ONNX exporters behind one signature, quiet, with their errors in one line each."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.exporter_errors import explain_export
from onnxbuild.onnxkit.exporter_names import settle_names
from onnxbuild.onnxkit.feeds import Feeds
from onnxbuild.onnxkit.torch_module import flatten_outputs

if TYPE_CHECKING:
    import onnx
    import torch

EXPORTERS = ("dynamo", "torchscript")

_WRAPPED = "module"


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What is to be exported.

    Attributes:
        feeds: Example inputs, one for each of `inputs`.
        output_names: One for each flattened output.
        translations: PyTorch operator -> onnxscript function(s), for the dynamo exporter.
        scratch: A folder for the exporter's own files.
        where: `recipe:step`, for messages.
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


def export_graph(exporter: str, request: ExportRequest) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    """Export with one of EXPORTERS; outputs are flattened as `flatten_outputs` says.

    Returns: The model as the exporter made it but for the names, and remarks for the user.

    Raises:
        StepError: The exporter gave up; names the operator or the axis where it can.
    """
    import torch

    wrapper = _flattening_wrapper(request)
    export = _export_dynamo if exporter == "dynamo" else _export_torchscript
    # torch documents OnnxExporterError but lets these through as well
    failures = (
        torch.onnx.OnnxExporterError, torch.jit.TracingCheckError, ArithmeticError,
        AssertionError, AttributeError, ImportError, LookupError, NotImplementedError,
        RuntimeError, TypeError, ValueError,
    )  # fmt: skip
    try:
        with _quiet() as caught, torch.no_grad():
            model = export(wrapper, request)
    except failures as error:
        raise explain_export(error, exporter, request.opset, request.where) from error
    names = [each.name for each in request.inputs]
    final = dict(zip(_safe_names("input", len(names)), names, strict=True))
    names = list(request.output_names)
    final |= zip(_safe_names("output", len(names)), names, strict=True)
    settle_names(model, final, _WRAPPED)
    return model, _trace_remarks(caught)


def explain_specialization(request: ExportRequest) -> str:
    """torch.export's own line on why an axis can't be dynamic; empty where it has nothing to say."""
    import torch

    shapes = (_dynamic_shapes(request),)
    try:
        with _quiet(), torch.no_grad():
            torch.export.export(
                _flattening_wrapper(request), _tensors(request), dynamic_shapes=shapes,
                strict=False,
            )  # fmt: skip
    except (RuntimeError, ValueError, TypeError, AssertionError) as error:
        lines = [line.strip() for line in str(error).splitlines()]
        said = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
        return said[0].split(". If you're")[0] if said else ""
    return ""


def _flattening_wrapper(request: ExportRequest) -> torch.nn.Module:
    """A module that takes tensors by position and returns a flat tuple, for either exporter."""
    import torch

    names = [each.name for each in request.inputs]

    class Flattened(torch.nn.Module):  # type: ignore[misc] # torch is Any here
        def __init__(self) -> None:
            super().__init__()
            self.add_module(_WRAPPED, request.module)

        def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
            value = request.module(**dict(zip(names, tensors, strict=True)))
            return tuple(flatten_outputs(value, request.where))

    return Flattened().eval()  # the exporters restore the mode of the outermost module


def _export_dynamo(wrapper: torch.nn.Module, request: ExportRequest) -> onnx.ModelProto:
    import torch

    program = torch.onnx.export(
        wrapper,
        _tensors(request),
        dynamic_shapes=(_dynamic_shapes(request),),
        input_names=_safe_names("input", len(request.inputs)),
        output_names=_safe_names("output", len(request.output_names)),
        opset_version=request.opset,
        custom_translation_table=dict(request.translations) or None,
        dynamo=True,
        optimize=request.constant_folding,
        verbose=False,
    )
    return program.model_proto


def _export_torchscript(wrapper: torch.nn.Module, request: ExportRequest) -> onnx.ModelProto:
    import onnx
    import torch

    axes = {
        safe: {n: name for n, name in enumerate(each.shape) if isinstance(name, str)}
        for safe, each in zip(
            _safe_names("input", len(request.inputs)), request.inputs, strict=True
        )
    }
    file = request.scratch / "torchscript.onnx"  # beyond 2 GB the exporter needs a folder
    torch.onnx.export(
        wrapper,
        _tensors(request),
        str(file),
        input_names=_safe_names("input", len(request.inputs)),
        output_names=_safe_names("output", len(request.output_names)),
        dynamic_axes={name: dims for name, dims in axes.items() if dims},
        opset_version=request.opset,
        do_constant_folding=request.constant_folding,
        keep_initializers_as_inputs=False,
        dynamo=False,
        verbose=False,
    )
    return onnx.load(str(file))


def _dynamic_shapes(request: ExportRequest) -> tuple[dict[int, Any], ...]:
    """For each input, dimension -> the Dim that its symbol shares across inputs."""
    import torch

    dims = {
        axis.name: torch.export.Dim(axis.name, min=axis.min, max=axis.max)
        for axis in request.axes
        if axis.min < axis.max
    }
    return tuple(
        {n: dims[name] for n, name in enumerate(each.shape) if name in dims}
        for each in request.inputs
    )


def _tensors(request: ExportRequest) -> tuple[torch.Tensor, ...]:
    import torch

    return tuple(torch.from_numpy(request.feeds[each.name].copy()) for each in request.inputs)


def _safe_names(kind: str, count: int) -> list[str]:
    """Names that no value inside can have.

    With torch 2.13's dynamo exporter an output called `embedding` collides with the value of the
    node of that name, and the graph is no longer in SSA form.
    """
    return [f"onnxbuild::{kind}_{n}" for n in range(count)]


@contextlib.contextmanager
def _quiet() -> Iterator[list[warnings.WarningMessage]]:
    """Keep the exporters' graphs and notices out of the log; gives the warnings they raise."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)  # `torchvision is not installed`, four times an export
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(io.StringIO()),
        ):
            warnings.simplefilter("always")
            yield caught
    finally:
        logger.setLevel(level)


def _trace_remarks(caught: Sequence[warnings.WarningMessage]) -> tuple[str, ...]:
    """What the tracer says it froze, with the user's line; one remark a line."""
    import torch

    remarks = [
        f"traced as a constant at {Path(each.filename).name}:{each.lineno}: "
        f"{str(each.message).split('. ')[0]}"
        for each in caught
        if issubclass(each.category, torch.jit.TracerWarning)
        and "site-packages" not in each.filename
    ]
    return tuple(dict.fromkeys(remarks))
