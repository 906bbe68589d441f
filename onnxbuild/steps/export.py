"""Export a PyTorch module to canonical ONNX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onnxbuild.core.params import option
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How the model is exported."""

    exporter: Literal["auto", "dynamo", "torchscript"] = option(
        "auto",
        help="auto tries dynamo, then torchscript, and keeps the first that checks and matches "
        "PyTorch",
    )
    constant_folding: bool = option(True, help="compute what depends on weights alone")
    external_data: Literal["auto", "always"] = option(
        "auto", help="auto keeps weights inside model.onnx up to 1 GiB; always puts them beside it"
    )


@dataclass(frozen=True, slots=True)
class ExportParams:
    """All that steers an export."""

    model: Entrypoint
    inputs: tuple[DummyInput, ...]
    outputs: tuple[str, ...]
    axes: tuple[Axis, ...]
    opset: int
    translations: Entrypoint | None
    options: ExportOptions


def run(context: StepContext) -> Outcome:
    """Export, canonicalize, and compare with PyTorch before anything is kept."""
    raise NotImplementedError


def _entrypoints(params: ExportParams) -> tuple[Entrypoint, ...]:
    return (params.model,) if params.translations is None else (params.model, params.translations)


KIND = StepKind(
    name="export",
    version=1,
    params=ExportParams,
    inputs=(),
    outputs={"model": "onnx-model", "config": "report"},
    toolchain=("torch", "onnx", "onnxscript", "onnx-ir", "onnxruntime", "numpy"),
    run=run,
    section="export",
    options=ExportOptions,
    user_code=True,
    entrypoints=_entrypoints,
)
