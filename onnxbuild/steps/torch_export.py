"""Export a PyTorch module with torch.export: a .pt2 file of its graph, with dynamic axes."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.params import option
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.programs.artifact_file import (
    FILE_OF_FORMAT,
    ProgramDescription,
    describe_inputs,
    write_description,
)
from onnxbuild.onnxkit.programs.torch_export import export_program, save_program


@dataclass(frozen=True, slots=True)
class TorchExportOptions:
    """Options of the export by torch.export."""

    strict: bool = option(
        False, help="follow forward's bytecode (TorchDynamo) instead of running it on fake tensors"
    )


@dataclass(frozen=True, slots=True)
class TorchExportParams:
    """Parameters of an export."""

    model: Entrypoint
    inputs: tuple[DummyInput, ...]
    outputs: tuple[str, ...]
    axes: tuple[Axis, ...]
    options: TorchExportOptions


def run(context: StepContext) -> Outcome:
    """Write model.pt2 and program.json.

    Raises:
        StepError: The module is not as declared, or torch.export can't follow it.
    """
    from onnxbuild.onnxkit.programs.example_inputs import load_example

    params: TorchExportParams = context.params
    phase("loading the model")
    example = load_example(context, params.model, params.inputs, params.outputs, params.axes)
    phase("tracing with torch.export")
    program = export_program(
        example.module,
        params.inputs,
        example.outputs,
        params.axes,
        example.feeds,
        strict=params.options.strict,
        where=context.where,
    )
    folder = context.output("program")
    file = folder / FILE_OF_FORMAT["torch-export"]
    phase("saving")
    save_program(program, file, context.scratch)
    write_description(
        folder,
        ProgramDescription("torch-export", describe_inputs(params.inputs), example.outputs),
    )
    return Outcome({"nodes": len(program.graph.nodes), "size_bytes": file.stat().st_size})


KIND = StepKind(
    name="torch-export",
    version=3,
    params=TorchExportParams,
    inputs=(),
    outputs={"program": "torch-export"},
    toolchain=("torch", "numpy"),
    run=run,
    user_code=True,
    entrypoints=lambda params: (params.model,),
)
