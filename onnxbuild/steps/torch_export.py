"""Export a PyTorch module with torch.export: a .pt2 file of its graph, with dynamic axes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import option
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.user_code import user_line
from onnxbuild.onnxkit.export.exportable_forms import has_recurrences, scanned_recurrences
from onnxbuild.onnxkit.export.torch_module import without_fast_path
from onnxbuild.onnxkit.export.torch_wrapping import (
    dynamic_shapes,
    example_tensors,
    flattening_wrapper,
    quiet,
)
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.modules.program_modules import is_scripted
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


_POSITIONS = ("stack_trace", "from_node")
"""Keys of a node's meta that hold paths and numbers that depend on what ran before."""


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
        folder, ProgramDescription("torch-export", describe_inputs(params.inputs), example.outputs)
    )
    return Outcome({"nodes": len(program.graph.nodes), "size_bytes": file.stat().st_size})


def export_program(
    module: torch.nn.Module,
    inputs: Sequence[DummyInput],
    outputs: Sequence[str],
    axes: Sequence[Axis],
    feeds: Feeds,
    *,
    strict: bool,
    where: str,
) -> Any:
    """The module as a torch.export.ExportedProgram.

    It takes tensors by position in the order of `inputs` and returns a flat tuple of `outputs`. Axes whose range
    is more than one size are dynamic, within that range.

    Raises:
        StepError: torch.export can't follow it, or an axis can't be dynamic; gives its own line.
    """
    import torch
    from torch._export.verifier import SpecViolationError

    def export() -> Any:
        with quiet(), torch.no_grad(), without_fast_path(), _small_multiples(axes):
            return torch.export.export(
                flattening_wrapper(module, inputs, outputs, where),
                example_tensors(inputs, feeds),
                dynamic_shapes=(dynamic_shapes(inputs, axes),),
                strict=strict,
            )

    try:
        try:
            program = export()
        except PROGRAM_ERRORS:
            if not has_recurrences(module):
                raise
            with scanned_recurrences(module, set()):  # AOTInductor takes a loop, and no scan
                program = export()
    except (*PROGRAM_ERRORS, SpecViolationError) as error:
        if is_scripted(module):
            raise _no_script(error, where) from error
        raise _explain(error, where) from error
    for part in program.graph_module.modules():
        for node in part.graph.nodes if isinstance(part, torch.fx.GraphModule) else ():
            _forget_this_process(node.meta)
    return program


@contextlib.contextmanager
def _small_multiples(axes: Sequence[Axis]) -> Iterator[None]:
    """Let a program take an axis at its step itself.

    torch.export takes 1 for a constant, and of `16 * n` it is n that it looks at: the program would
    refuse the size 16 (`Guard failed: x.size()[2] // 16 != 1`).
    """
    from torch.fx.experimental import _config

    if any(axis.multiple_of > 1 for axis in axes):
        with _config.patch(backed_size_oblivious=True):
            yield
    else:
        yield


def _forget_this_process(meta: dict[str, Any]) -> None:
    """Take what another process or folder would have otherwise out of a node's meta."""
    for key in _POSITIONS:
        meta.pop(key, None)
    stack = meta.get("nn_module_stack")
    if stack:  # with `strict`, modules in closures are keyed by id()
        meta["nn_module_stack"] = {
            module[0] if str(key).isdigit() else key: module for key, module in stack.items()
        }


def save_program(program: Any, target: Path, scratch: Path) -> None:
    """Write a .pt2 file; equal programs give equal bytes wherever they are made."""
    import torch

    raw = scratch / "raw.pt2"
    with quiet():
        torch.export.save(program, str(raw))
    rewrite_archive(raw, target)
    raw.unlink()


def _no_script(error: Exception, where: str) -> StepError:
    return StepError(
        f"torch.export can't follow TorchScript: {type(error).__name__}: {first_line(error)}",
        where=where,
        fix="leave `torch-export` and `aotinductor` out of `formats`, or name the module that the TorchScript was made "
        "of",
    )


def _explain(error: Exception, where: str) -> StepError:
    lines = [line.strip() for line in str(error).splitlines()]
    constraints = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
    if "Constraints violated" in str(error) and constraints:
        said = constraints[0].split(". If you're")[0]
        return StepError(
            f"torch.export can't keep the declared axes dynamic: {said}",
            where=where,
            fix="read sizes from the tensors in forward (x.shape[0]) instead of numbers, or "
            "narrow the axis in `dynamic_axes`",
        )
    place = user_line(error, sys.path)
    return StepError(
        f"torch.export failed: {type(error).__name__}: {first_line(error)}",
        where=f"{where} ({place})" if place else where,
        fix="change that line of forward: an export follows tensors, not Python values "
        "(torch.where or torch.cond instead of `if`, sizes from x.shape)",
    )


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
