"""Import a PyTorch program that was made elsewhere as an artifact, to compare the recipe's models with."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from onnxbuild.core.axis import example_sizes, shape_at
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.bundles.manifest import read_manifest
from onnxbuild.onnxkit.data.feeds import make_feeds
from onnxbuild.onnxkit.host.made_for import check_made_for
from onnxbuild.onnxkit.modules.module_outputs import named_outputs
from onnxbuild.onnxkit.programs.artifact_file import (
    ProgramDescription,
    ProgramFormat,
    described,
    write_description,
)
from onnxbuild.onnxkit.programs.programs import PROGRAM_ERRORS, open_program
from onnxbuild.onnxkit.sessions.open import first_line


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


def run(context: StepContext) -> Outcome:
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
    from onnxbuild.onnxkit.programs.signature import check_description, described_as, signature_of

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
    check_description(description, params.inputs, params.name)
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
    name="import-program",
    version=2,
    params=ImportProgramParams,
    inputs=(),
    outputs={"program": "program"},
    toolchain=("torch", "numpy"),
    run=run,
    host_bound=True,
    user_code=True,
    entrypoints=lambda params: (params.model,),
)
"""User code: what others made runs behind the fence, like a recipe's own."""
