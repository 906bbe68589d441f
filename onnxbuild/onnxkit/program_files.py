"""A program artifact: the file that PyTorch runs without the module, and program.json about it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.reports import write_report

ProgramFormat = Literal["torchscript", "torch-export", "aotinductor"]

FILE_OF_FORMAT: Mapping[ProgramFormat, str] = {
    "torchscript": "model.pt",
    "torch-export": "model.pt2",
    "aotinductor": "model.pt2",
}
DESCRIPTION_FILE = "program.json"


@dataclass(frozen=True, slots=True)
class ProgramInput:
    """One input; shape in ints and symbols of the dynamic axes, outermost first."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class ProgramDescription:
    """How a program is called.

    Attributes:
        format: What it is.
        inputs: What it takes.
        outputs: Names of the flattened outputs, in order.
        by_keyword: Inputs are given by name (scripted modules keep forward's signature); else by
            position, in the order of `inputs`.
    """

    format: ProgramFormat
    inputs: tuple[ProgramInput, ...]
    outputs: tuple[str, ...]
    by_keyword: bool = False

    @property
    def file(self) -> str:
        """The program's file name."""
        return FILE_OF_FORMAT[self.format]


def describe_inputs(inputs: Sequence[DummyInput]) -> tuple[ProgramInput, ...]:
    """What of dummy inputs a caller must know."""
    return tuple(ProgramInput(each.name, each.dtype, each.shape) for each in inputs)


def write_description(folder: Path, description: ProgramDescription) -> None:
    """Write program.json."""
    write_report(folder, asdict(description), DESCRIPTION_FILE)


def read_description(folder: Path) -> ProgramDescription:
    """Read what `write_description` wrote."""
    told = json.loads((folder / DESCRIPTION_FILE).read_text(encoding="utf-8"))
    inputs = tuple(
        ProgramInput(each["name"], each["dtype"], tuple(each["shape"])) for each in told["inputs"]
    )
    outputs = tuple(told["outputs"])
    return ProgramDescription(told["format"], inputs, outputs, told["by_keyword"])


def program_bytes(folder: Path) -> int:
    """Size of the program's file."""
    return (folder / read_description(folder).file).stat().st_size
