"""A program artifact: the file that PyTorch runs without the module, and program.json about it."""

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, cast

from onnxbuild.core.params import from_json
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.bundles.manifest import Manifest
from onnxbuild.onnxkit.host.made_for import MadeFor
from onnxbuild.onnxkit.reports import described_file, write_report

ProgramFormat = Literal["torchscript", "torch-export", "aotinductor"]

FILE_OF_FORMAT: Mapping[ProgramFormat, str] = {
    "torchscript": "model.pt",
    "torch-export": "model.pt2",
    "aotinductor": "model.pt2",
}
DESCRIPTION_FILE = "program.json"
PROGRAM_SUFFIXES = (".pt", ".pth", ".pt2")

_MARKS: Mapping[ProgramFormat, tuple[str, ...]] = {
    "aotinductor": (".so",),
    "torchscript": ("/constants.pkl",),
    "torch-export": ("/models/model.json", "/serialized_exported_program.json"),
}
"""Ends of names of records that only such an archive has; the second of torch.export's is of torch
before 2.7. First come packages, which have some of torch.export's records, too."""


@dataclass(frozen=True, slots=True)
class ProgramInput:
    """One input; shape in ints and symbols of the dynamic axes, outermost first."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class ProgramDescription:
    """Description of how a program is called.

    Attributes:
        format: Of its file.
        inputs: Tensors that it takes, in order.
        outputs: Names of the flattened outputs, in order.
        by_keyword: Inputs are given by name (scripted modules keep forward's signature); else by
            position, in the order of `inputs`.
        made_for: The machine that machine code is for; None where any will do.
    """

    format: ProgramFormat
    inputs: tuple[ProgramInput, ...]
    outputs: tuple[str, ...]
    by_keyword: bool = False
    made_for: MadeFor | None = None

    @property
    def file(self) -> str:
        """The program's file name."""
        return FILE_OF_FORMAT[self.format]


def describe_inputs(inputs: Sequence[DummyInput]) -> tuple[ProgramInput, ...]:
    """Describe dummy inputs for callers."""
    return tuple(ProgramInput(each.name, each.dtype, each.shape) for each in inputs)


def write_description(folder: Path, description: ProgramDescription) -> None:
    """Write program.json."""
    write_report(folder, asdict(description), DESCRIPTION_FILE)


def read_description(folder: Path) -> ProgramDescription:
    """Read what `write_description` wrote.

    Raises:
        StepError: A plug-in's step made the folder, and did not call it.
    """
    file = described_file(folder, DESCRIPTION_FILE, __name__)
    return from_json(ProgramDescription, json.loads(file.read_bytes()), DESCRIPTION_FILE)


def program_bytes(folder: Path) -> int:
    """Size of the program's file."""
    return (folder / read_description(folder).file).stat().st_size


def described(manifest: Manifest) -> ProgramDescription:
    """Return how the program of a bundle is called.

    Raises:
        ValueError: It is the bundle of an ONNX model.
    """
    if manifest.runtime != "torch":
        raise ValueError(f"it is of {manifest.kind}, which is no program")
    return ProgramDescription(
        cast("ProgramFormat", manifest.kind),
        tuple(
            ProgramInput(each.name, str(each.dtype), each.shape or ()) for each in manifest.inputs
        ),
        tuple(each.name for each in manifest.outputs),
        bool(manifest.by_keyword),
        manifest.made_for,
    )


def program_format(path: Path) -> ProgramFormat | None:
    """Return a program file's format by its content; None if it is none, or holds weights alone."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [f"/{name}" for name in archive.namelist()]
    except (OSError, ValueError, zipfile.BadZipFile):
        return None
    for found, marks in _MARKS.items():
        if any(name.endswith(marks) for name in names):
            return found
    return None
