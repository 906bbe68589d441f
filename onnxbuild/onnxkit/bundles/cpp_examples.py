"""The C++ program that a bundle ships next to load.py: plain files, its inputs filled in."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from onnxbuild.core.axis import shape_at, size_at, sums_of, symbols_of
from onnxbuild.onnxkit.bundles.manifest import ONNX, Manifest
from onnxbuild.onnxkit.sessions.custom_operators import OperatorLibrary

_PLAIN_OPTIONS = "  const Ort::SessionOptions options;\n"
_EXAMPLES = Path(__file__).parent / "examples"
_PROGRAMS: Mapping[str, str] = {"torchscript": "torchscript.cpp", "aotinductor": "aotinductor.cpp"}
"""torch.export's .pt2 has no stable loader in libtorch."""

_SCALAR_TYPES = {
    "float32": "at::kFloat", "float16": "at::kHalf", "bfloat16": "at::kBFloat16", "float64": "at::kDouble", "int64": "at::kLong",
    "int32": "at::kInt", "int16": "at::kShort", "int8": "at::kChar", "uint8": "at::kByte",
    "bool": "at::kBool",
}  # fmt: skip


def write_example(folder: Path, manifest: Manifest) -> None:
    """Write main.cpp and CMakeLists.txt; nothing for kinds that C++ can't load or that have no example."""
    if manifest.kind == ONNX:
        _write_onnx_example(folder, manifest)
    elif manifest.kind in _PROGRAMS:
        _write_program_example(folder, manifest)


def _write_program_example(folder: Path, manifest: Manifest) -> None:
    """Write main.cpp, example.h with the program's inputs, and CMakeLists.txt."""
    folder.mkdir()
    sizes = _example_sizes(manifest)
    inputs = []
    for each in manifest.inputs:
        shape = ", ".join(map(str, shape_at(each.shape or (), sizes)))
        dtype = _SCALAR_TYPES[str(each.dtype)]
        inputs.append(f"    {{{_quoted(each.name)}, {dtype}, {{{shape}}}}},")
    filled = {
        "@INPUTS@": "\n".join(inputs),
        "@OUTPUTS@": ", ".join(_quoted(each.name) for each in manifest.outputs),
        "@BY_KEYWORD@": "true" if manifest.by_keyword else "false",
    }
    header = (_EXAMPLES / "example.h").read_text(encoding="utf-8")
    for mark, text in filled.items():
        header = header.replace(mark, text)
    (folder / "example.h").write_text(header, encoding="utf-8", newline="\n")
    shutil.copyfile(_EXAMPLES / _PROGRAMS[manifest.kind], folder / "main.cpp")
    shutil.copyfile(_EXAMPLES / "CMakeLists.txt", folder / "CMakeLists.txt")


def _write_onnx_example(folder: Path, manifest: Manifest) -> None:
    """Write a program that needs ONNX Runtime's headers and library alone.

    It asks the model for all but the example sizes of axes, and of sums of axes.
    """
    folder.mkdir()
    sizes = _example_sizes(manifest)
    shapes = [each.shape or () for each in manifest.inputs]
    known = (each for each in sums_of(shapes) if sizes.keys() >= set(symbols_of(each)))
    sizes |= {each: size_at(each, sizes) for each in known}
    listed = ", ".join(f"{{{_quoted(name)}, {size}}}" for name, size in sizes.items())
    program = (_EXAMPLES / "onnx.cpp").read_text(encoding="utf-8").replace("@AXES@", listed)
    if manifest.operators:
        assert program.count(_PLAIN_OPTIONS) == 1
        program = program.replace(
            _PLAIN_OPTIONS, "\n".join(_options_with(manifest.operators)) + "\n"
        )
    (folder / "main.cpp").write_text(program, encoding="utf-8", newline="\n")
    shutil.copyfile(_EXAMPLES / "onnx_CMakeLists.txt", folder / "CMakeLists.txt")


def _options_with(libraries: Sequence[OperatorLibrary]) -> Iterator[str]:
    yield "  Ort::SessionOptions options;"
    yield "  const std::filesystem::path folder = std::filesystem::path(path).parent_path();"
    yield from registering_lines(libraries)


def registering_lines(libraries: Sequence[OperatorLibrary]) -> Iterator[str]:
    """Yield lines of C++ that register libraries with `options`, those for the platform that they are compiled for.

    Args:
        libraries: At least one; their files are below the path `folder`.
    """
    platforms = dict.fromkeys(name for each in libraries for name in each.platforms)
    keyword = "#if"
    for name in platforms:
        yield f"{keyword} {_condition(name)}"
        keyword = "#elif"
        for each in libraries:
            if each.registers and name in each.platforms:
                place = f"folder / {_quoted(each.file)}"
                yield f"  options.RegisterCustomOpsLibrary(({place}).c_str());"
    yield "#else"
    yield '#error "the model\'s custom operators are not built for this platform"'
    yield "#endif"


def _condition(name: str) -> str:
    """Return the preprocessor's condition for a platform."""
    system, _, machine = name.partition("-")
    systems = {
        "linux": "defined(__linux__)",
        "macos": "defined(__APPLE__)",
        "windows": "defined(_WIN32)",
    }
    machines = {
        "x86_64": "(defined(__x86_64__) || defined(_M_X64))",
        "aarch64": "(defined(__aarch64__) || defined(_M_ARM64))",
    }
    return f"{systems[system]} && {machines.get(machine, f'defined(__{machine}__)')}"


def _example_sizes(manifest: Manifest) -> dict[str, int]:
    return {name: axis["example"] for name, axis in manifest.dynamic_axes.items()}


def _quoted(text: str) -> str:
    """A C++ string literal; beyond ASCII as UTF-8 escapes of three octal digits."""
    plain = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isascii() else "".join(f"\\{b:03o}" for b in c.encode()) for c in plain)
