"""Compile a PyTorch module to TorchScript: one archive that runs without its Python code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import option
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.user_code import user_line
from onnxbuild.onnxkit.export.torch_module import without_fast_path
from onnxbuild.onnxkit.export.torch_wrapping import (
    example_tensors,
    flattening_wrapper,
    quiet,
    trace_remarks,
)
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.modules.program_modules import scripted_in
from onnxbuild.onnxkit.programs.archives import rewrite_archive
from onnxbuild.onnxkit.programs.artifact_file import (
    FILE_OF_FORMAT,
    ProgramDescription,
    describe_inputs,
    write_description,
)
from onnxbuild.onnxkit.programs.programs import PROGRAM_ERRORS
from onnxbuild.onnxkit.sessions.open import first_line

if TYPE_CHECKING:
    import torch


Method = Literal["trace", "script"]


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


def compile_torchscript(
    module: torch.nn.Module,
    inputs: Sequence[DummyInput],
    outputs: Sequence[str],
    feeds: Feeds,
    *,
    method: Method,
    freeze: bool,
    where: str,
) -> tuple[Any, tuple[str, ...]]:
    """The module as a torch.jit.ScriptModule.

    Traced, it takes tensors by position in the order of `inputs` and returns a flat tuple.
    Scripted, it keeps forward's own signature and structure.

    Args:
        outputs: Names of what a trace returns, in their order; see `named_outputs`.
        feeds: One array for each input; tracing runs the module on them.
        method: `trace` follows tensors and freezes all other choices; `script` compiles the source.
        freeze: Fold weights and attributes into the graph.
        where: `recipe:step`, for messages.

    Returns: The module, and remarks on what tracing froze.

    Raises:
        StepError: PyTorch can't compile it; gives its first line and the user's.
    """
    import torch

    try:
        with quiet() as caught, torch.no_grad(), without_fast_path():
            if method == "trace":
                wrapper = flattening_wrapper(module, inputs, outputs, where)
                made = torch.jit.trace(wrapper, example_tensors(inputs, feeds), check_trace=False)
            else:
                made = scripted_in(module) or torch.jit.script(module)
            if freeze:
                made = torch.jit.freeze(made.eval())
    except (*PROGRAM_ERRORS, OSError, torch.jit.frontend.FrontendError) as error:
        raise _explain(error, method, where) from error
    return made, trace_remarks(caught)


def save_torchscript(made: Any, target: Path, scratch: Path) -> None:
    """Write a ScriptModule; equal modules give equal bytes wherever they are made."""
    import torch

    raw = scratch / "raw.pt"
    with quiet():
        torch.jit.save(made, str(raw))
    rewrite_archive(raw, target)
    raw.unlink()


def _explain(error: Exception, method: Method, where: str) -> StepError:
    fix = (
        "write what it names in TorchScript's Python (docs of torch.jit.script), or "
        "`formats: {torchscript: {method: trace}}`"
        if method == "script"
        else "change that line of forward: a trace follows tensors, not Python values; or "
        "`formats: {torchscript: {method: script}}`"
    )
    place = user_line(error, sys.path)
    return StepError(
        f"torch.jit.{method} failed: {type(error).__name__}: {first_line(error)}",
        where=f"{where} ({place})" if place else where,
        fix=fix,
    )


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
