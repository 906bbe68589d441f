"""Import a model or a PyTorch program that was made elsewhere as an artifact, to compare the recipe's models with."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from onnxbuild.core.axis import example_sizes, shape_at
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import ORT_FILE, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.ahead_of_time.ort_format import check_machine, ort_inputs
from onnxbuild.onnxkit.bundles.manifest import read_manifest
from onnxbuild.onnxkit.data.feeds import make_feeds
from onnxbuild.onnxkit.host.made_for import check_made_for
from onnxbuild.onnxkit.model.inspect import dimensions, dtype_name
from onnxbuild.onnxkit.model.model_files import file_bytes, load_model, save_model
from onnxbuild.onnxkit.modules.module_outputs import named_outputs
from onnxbuild.onnxkit.programs.artifact_file import (
    ProgramDescription,
    ProgramFormat,
    described,
    write_description,
)
from onnxbuild.onnxkit.programs.programs import PROGRAM_ERRORS, open_program
from onnxbuild.onnxkit.programs.signature import (
    Shape,
    check_inputs,
    check_names,
    described_as,
    signature_of,
)
from onnxbuild.onnxkit.sessions.open import first_line

ORT_SUFFIX = ".ort"

_NARROWED = {("float32", "float16")}
"""(declared, found) that is fed all the same: a variant may narrow its inputs."""


@dataclass(frozen=True, slots=True)
class ImportParams:
    """Parameters of an import.

    Attributes:
        model: Its files: the model, then its external data, or of ORT format its bundle's manifest.
        name: As the user named it, for messages.
        inputs: What the recipe declares, and will feed.
    """

    model: Entrypoint
    name: str
    inputs: tuple[DummyInput, ...]


def run(context: StepContext) -> Outcome:
    """Write the model as the store spells models; one in ORT format as it is.

    Raises:
        StepError: It is no ONNX model, lacks its external data, is for another machine or ONNX
            Runtime, or takes other inputs.
    """
    params: ImportParams = context.params
    path, *attached = (place for _, place in context.files(params.model))
    target = context.output("model")
    if path.suffix == ORT_SUFFIX:
        for manifest in attached:
            check_machine(manifest, params.name)
        _check(params, ort_inputs(path, params.name))
        shutil.copyfile(path, target / ORT_FILE)
    else:
        _check(params, _onnx_inputs(path))
        save_model(load_model(path, weights="mapped"), target)
    return Outcome(metrics={"size_bytes": file_bytes(target)})


def _check(params: ImportParams, found: Mapping[str, tuple[str, Shape | None]]) -> None:
    check_names(params.name, tuple(found), params.inputs)
    check_inputs(params.name, found, params.inputs, narrowed=_NARROWED)


def _onnx_inputs(path: Path) -> dict[str, tuple[str, Shape | None]]:
    graph = load_model(path, weights="left").graph
    weights = {each.name for each in graph.initializer}
    return {
        each.name: (dtype_name(each.type.tensor_type.elem_type), dimensions(each))
        for each in graph.input
        if each.name not in weights
    }


@dataclass(frozen=True, slots=True)
class ImportProgramParams:
    """Parameters of an import.

    Attributes:
        model: Its files: the program, then its bundle's manifest, if it is in one.
        name: As the user named it, for messages.
        format: What it is.
        inputs: What the recipe declares, and will feed.
        axes: Their sizes.
    """

    model: Entrypoint
    name: str
    format: str
    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]


def run_program(context: StepContext) -> Outcome:
    """Write the program and program.json; it is run once, on the recipe's example.

    Raises:
        StepError: PyTorch can't load or run it, it takes other inputs, or is for another machine.
    """
    params: ImportProgramParams = context.params
    program, *manifest = (path for _, path in context.files(params.model))
    description = _described(params, program, manifest)
    folder = context.output("program")
    target = folder / description.file
    shutil.copyfile(program, target)
    write_description(folder, description)
    names = _outputs_of(params, folder)
    if not description.outputs:
        write_description(folder, replace(description, outputs=names))
    return Outcome({"format": params.format, "size_bytes": target.stat().st_size})


def _described(
    params: ImportProgramParams, program: Path, manifest: list[Path]
) -> ProgramDescription:
    found = cast("ProgramFormat", params.format)
    if not manifest:
        return described_as(
            signature_of(program, found, params.name), found, params.inputs, params.name
        )
    try:
        described_by = json.loads(manifest[0].read_text(encoding="utf-8"))
        description = described(read_manifest(described_by))
    except ValueError as error:
        raise StepError(
            f"the manifest of {params.name} says nothing that can be followed: {error}",
            where=params.name,
            fix=f"name the program itself: {program.name} in that folder",
        ) from error
    check_made_for(description.made_for, params.name)
    found_inputs = {each.name: (each.dtype, each.shape) for each in description.inputs}
    check_names(params.name, tuple(found_inputs), params.inputs)
    check_inputs(params.name, found_inputs, params.inputs)
    return description


def _outputs_of(params: ImportProgramParams, folder: Path) -> tuple[str, ...]:
    """The names of what it gives, run once; see `named_outputs`."""
    opened = open_program(folder, threads=1, where=params.name)
    sizes = example_sizes(params.axes)
    try:
        feeds = make_feeds(params.inputs, sizes, seed=0)
        return tuple(named_outputs(opened.bind(feeds)(), inputs=feeds))
    except PROGRAM_ERRORS as error:
        shown = ", ".join(
            f"{each.name} {each.dtype}{list(shape_at(each.shape, sizes))}"
            for each in params.inputs
        )
        raise StepError(
            f"{params.name} does not take what the recipe feeds, {shown}: {first_line(error)}",
            where=params.name,
            fix="compare models of the same inputs, in the same order where they have no names",
        ) from error


KIND = StepKind(
    name="import",
    version=4,
    params=ImportParams,
    inputs=(),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "numpy", "onnxruntime"),
    run=run,
    user_code=True,
    entrypoints=lambda params: (params.model,),
)
"""User code: what others made is opened behind the fence, like a recipe's own."""

PROGRAM = StepKind(
    name="import-program",
    version=2,
    params=ImportProgramParams,
    inputs=(),
    outputs={"program": "program"},
    toolchain=("torch", "numpy"),
    run=run_program,
    host_bound=True,
    user_code=True,
    entrypoints=lambda params: (params.model,),
)
