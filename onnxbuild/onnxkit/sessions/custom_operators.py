"""Libraries of custom operators: what this process registers in every session that it opens.

A step that opens sessions takes them as its input OPERATORS_INPUT. Its process adopts them before the
step runs, so that no function between a step and a session has to hand them on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import from_json, to_json
from onnxbuild.onnxkit.frameworks import onnx, onnxruntime
from onnxbuild.onnxkit.loaders.operator_libraries import this_platform

OPERATORS_INPUT = "operators"
"""Input of a step: the folder that `write_libraries` has written."""

NODES_INPUT = "operators/nodes"
"""Input of `export`: a report, PyTorch operator -> operator of a library."""

LIBRARIES_FILE = "libraries.json"
"""List of the libraries, in the folder that `write_libraries` has written."""

WHAT_TO_WRITE = (
    "compile the operator into a library and write `operators: {libraries: [PATH]}`, or make it a "
    "model-local function (docs/operators.md)"
)
_UNKNOWN = (
    re.compile(
        r"Fatal error: (?P<domain>[^\s:]*):(?P<name>\w+)\(-?\d+\) is not a registered function/op"
    ),
    re.compile(
        r"\(\"[^\"]*\", (?P<name>\w+), \"(?P<domain>[^\"]*)\", -?\d+\) .*?No Op registered for"
    ),
    re.compile(r"No Op registered for (?P<name>\w+) with domain_version"),
)


@dataclass(frozen=True, slots=True)
class OperatorLibrary:
    """A shared library that comes with a model.

    Attributes:
        file: Below the folder that holds the model, or LIBRARIES_FILE.
        platforms: For which it holds code, as `linux-x86_64`.
        registers: It has operators; else another library loads it.
    """

    file: str
    platforms: tuple[str, ...]
    registers: bool = True


class _Adopted:
    """Libraries that this process registers."""

    libraries: tuple[str, ...] = ()


def adopted_libraries() -> tuple[str, ...]:
    """Return the paths of the libraries that this process registers in its sessions."""
    return _Adopted.libraries


def adopt_libraries(paths: Sequence[str]) -> None:
    """Register these libraries, and no others, in every session that this process opens from now on."""
    _Adopted.libraries = tuple(paths)


@contextmanager
def operators_of(folder: Path | None) -> Iterator[None]:
    """Adopt the libraries of a folder that `write_libraries` has written; None adopts nothing."""
    before = _Adopted.libraries
    if folder is not None:
        adopt_libraries(paths_for_this_platform(folder, read_libraries(folder)))
    try:
        yield
    finally:
        _Adopted.libraries = before


def write_libraries(folder: Path, libraries: Sequence[OperatorLibrary]) -> None:
    """Write LIBRARIES_FILE."""
    text = json.dumps([to_json(each) for each in libraries], indent=2) + "\n"
    (folder / LIBRARIES_FILE).write_text(text, encoding="utf-8", newline="\n")


def read_libraries(folder: Path) -> tuple[OperatorLibrary, ...]:
    """Read LIBRARIES_FILE."""
    written = json.loads((folder / LIBRARIES_FILE).read_text(encoding="utf-8"))
    return tuple(from_json(OperatorLibrary, each) for each in written)


def paths_for_this_platform(folder: Path, libraries: Sequence[OperatorLibrary]) -> tuple[str, ...]:
    """Return the paths of the libraries to register on this platform, in order.

    Args:
        folder: That their names are below.
    """
    here = this_platform()
    return tuple(
        str(folder / each.file) for each in libraries if each.registers and here in each.platforms
    )


def other_platform(libraries: Sequence[OperatorLibrary]) -> str:
    """Return the sentence that says that none of the libraries is for this platform."""
    others = sorted({name for each in libraries for name in each.platforms})
    return f"its custom operators are built for {', '.join(others)}; this is {this_platform()}"


def register_libraries(
    options: onnxruntime.SessionOptions, libraries: Sequence[str] | None = None, where: str = ""
) -> None:
    """Register libraries of custom operators with a session.

    Args:
        options: The session's; no library may be registered with it twice.
        libraries: Paths; None for those that this process has adopted.
        where: `recipe:step`, for messages.

    Raises:
        StepError: One can't be loaded, or has no operators.
    """
    from onnxruntime.capi.onnxruntime_pybind11_state import Fail

    for path in _Adopted.libraries if libraries is None else libraries:
        try:
            options.register_custom_ops_library(path)
        except (Fail, RuntimeError) as error:
            raise StepError(
                f"ONNX Runtime can't load the library of custom operators {Path(path).name}: "
                f"{_reason(str(error), path)}",
                where=where,
                fix=_fix(str(error), Path(path).name),
            ) from error


def unknown_operator(said: str) -> str:
    """Return the operator that ONNX Runtime does not know, as `DOMAIN::NAME`; empty for other errors.

    Operators that ONNX has, and those of ONNX Runtime's own domain, are empty, too: another version of ONNX Runtime
    may know them.
    """
    found = next((match for match in (each.search(said) for each in _UNKNOWN) if match), None)
    if found is None:
        return ""
    domain, name = found.groupdict().get("domain") or "", found["name"]
    if domain == "com.microsoft" or onnx.defs.has(name, domain):
        return ""
    return f"{domain or 'ai.onnx'}::{name}"


def unknown_operator_error(operator: str, where: str) -> StepError:
    """An operator that neither ONNX Runtime nor a library has.

    Args:
        operator: `DOMAIN::NAME`.
        where: `recipe:step`, for messages.
    """
    having = [
        "ONNX Runtime " + onnxruntime.__version__,
        *(Path(each).name for each in _Adopted.libraries),
    ]
    *others, last = having
    which = f"neither {', '.join(others)} nor {last} has" if others else f"{last} does not have"
    what = f"the model has a node '{operator}', which {which}"
    return StepError(what, where=where, fix=WHAT_TO_WRITE)


def _reason(said: str, path: str) -> str:
    line = said.strip().splitlines()[0]
    return line.rpartition(" with error: ")[2].removeprefix(f"{path}: ").replace(f"{path}: ", "")


def _fix(said: str, name: str) -> str:
    if "RegisterCustomOps" in said:
        return (
            'define `extern "C" OrtStatus* ORT_API_CALL RegisterCustomOps(OrtSessionOptions*, const '
            "OrtApiBase*)` in it, with default visibility"
        )
    return f"`ldd {name}` names what it needs: put that into `operators.libraries`, too, or link it statically"
