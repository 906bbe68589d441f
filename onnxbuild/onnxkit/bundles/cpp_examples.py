"""The C++ program that a bundle ships next to load.py: plain files, its inputs filled in."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from onnxbuild.core.axis import Dimension, shape_at, size_at, sums_of, symbols_of
from onnxbuild.core.recipe import Axis
from onnxbuild.onnxkit.programs.artifact_file import ProgramDescription, ProgramFormat

_EXAMPLES = Path(__file__).parent / "examples"
_PROGRAMS: Mapping[ProgramFormat, str] = {
    "torchscript": "torchscript.cpp",
    "aotinductor": "aotinductor.cpp",
}
"""torch.export's .pt2 has no stable loader in libtorch."""

_SCALAR_TYPES = {
    "float32": "at::kFloat", "float16": "at::kHalf", "bfloat16": "at::kBFloat16", "float64": "at::kDouble", "int64": "at::kLong",
    "int32": "at::kInt", "int16": "at::kShort", "int8": "at::kChar", "uint8": "at::kByte",
    "bool": "at::kBool",
}  # fmt: skip


def write_program_example(
    folder: Path, description: ProgramDescription, axes: Sequence[Axis]
) -> None:
    """Write main.cpp, example.h and CMakeLists.txt; nothing for formats that C++ can't load.

    Args:
        folder: Made if need be.
        description: The program's.
        axes: Their example sizes are those of the inputs.
    """
    if description.format not in _PROGRAMS:
        return
    folder.mkdir()
    sizes = {axis.name: axis.example for axis in axes}
    inputs = []
    for each in description.inputs:
        shape = ", ".join(map(str, shape_at(each.shape, sizes)))
        inputs.append(f"    {{{_quoted(each.name)}, {_SCALAR_TYPES[each.dtype]}, {{{shape}}}}},")
    filled = {
        "@INPUTS@": "\n".join(inputs),
        "@OUTPUTS@": ", ".join(map(_quoted, description.outputs)),
        "@BY_KEYWORD@": "true" if description.by_keyword else "false",
    }
    header = (_EXAMPLES / "example.h").read_text(encoding="utf-8")
    for mark, text in filled.items():
        header = header.replace(mark, text)
    (folder / "example.h").write_text(header, encoding="utf-8", newline="\n")
    shutil.copyfile(_EXAMPLES / _PROGRAMS[description.format], folder / "main.cpp")
    shutil.copyfile(_EXAMPLES / "CMakeLists.txt", folder / "CMakeLists.txt")


def write_onnx_example(
    folder: Path, axes: Sequence[Axis], shapes: Sequence[Sequence[Dimension]]
) -> None:
    """Write main.cpp and CMakeLists.txt, which need ONNX Runtime's headers and library alone.

    Args:
        folder: Made if need be.
        axes: Their example sizes are those of the inputs; all else the program asks the model.
        shapes: The inputs', whose sums of axes the program must know, too.
    """
    folder.mkdir()
    sizes = {axis.name: axis.example for axis in axes}
    known = (each for each in sums_of(shapes) if sizes.keys() >= set(symbols_of(each)))
    sizes |= {each: size_at(each, sizes) for each in known}
    listed = ", ".join(f"{{{_quoted(name)}, {size}}}" for name, size in sizes.items())
    program = (_EXAMPLES / "onnx.cpp").read_text(encoding="utf-8").replace("@AXES@", listed)
    (folder / "main.cpp").write_text(program, encoding="utf-8", newline="\n")
    shutil.copyfile(_EXAMPLES / "onnx_CMakeLists.txt", folder / "CMakeLists.txt")


def _quoted(text: str) -> str:
    """A C++ string literal; beyond ASCII as UTF-8 escapes of three octal digits."""
    plain = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isascii() else "".join(f"\\{b:03o}" for b in c.encode()) for c in plain)
