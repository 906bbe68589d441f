"""Compile a PyTorch module to TorchScript: one archive that runs without its Python code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
from onnxbuild.onnxkit.programs.torchscript import compile_torchscript, save_torchscript


@dataclass(frozen=True, slots=True)
class TorchScriptOptions:
    """Options of the compilation to TorchScript."""

    method: Literal["trace", "script"] = option(
        "trace",
        help="trace follows the tensors of one run; script compiles forward's source, and keeps "
        "what it chooses by sizes and values",
    )
    freeze: bool = option(True, help="fold weights and attributes into the graph")


@dataclass(frozen=True, slots=True)
class TorchScriptParams:
    """Parameters of a compilation."""

    model: Entrypoint
    inputs: tuple[DummyInput, ...]
    outputs: tuple[str, ...]
    axes: tuple[Axis, ...]
    options: TorchScriptOptions


def run(context: StepContext) -> Outcome:
    """Write model.pt and program.json.

    Raises:
        StepError: The module is not as declared, or torch.jit can't compile it.
    """
    from onnxbuild.onnxkit.programs.example_inputs import load_example

    params: TorchScriptParams = context.params
    phase("loading the model")
    example = load_example(context, params.model, params.inputs, params.outputs, params.axes)
    phase("compiling to TorchScript")
    made, remarks = compile_torchscript(
        example.module,
        params.inputs,
        example.outputs,
        example.feeds,
        method=params.options.method,
        freeze=params.options.freeze,
        where=context.where,
    )
    folder = context.output("program")
    file = folder / FILE_OF_FORMAT["torchscript"]
    phase("saving")
    save_torchscript(made, file, context.scratch)
    by_keyword = params.options.method == "script"
    write_description(
        folder,
        ProgramDescription(
            "torchscript", describe_inputs(params.inputs), example.outputs, by_keyword
        ),
    )
    size = file.stat().st_size
    return Outcome({"method": params.options.method, "size_bytes": size}, notes=remarks)


KIND = StepKind(
    name="torchscript",
    version=3,
    params=TorchScriptParams,
    inputs=(),
    outputs={"program": "torchscript"},
    toolchain=("torch", "numpy"),
    run=run,
    user_code=True,
    entrypoints=lambda params: (params.model,),
)
