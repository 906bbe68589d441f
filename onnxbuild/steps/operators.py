"""Take the recipe's libraries of custom operators in: for which platforms they are, and whether they load here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from onnxbuild.core.digest import canonical_json
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.core.step import REPORT_FILE, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.frameworks import onnx
from onnxbuild.onnxkit.host.fork_call import call_forked
from onnxbuild.onnxkit.host.library_file import platforms_of
from onnxbuild.onnxkit.loaders.operator_libraries import this_platform
from onnxbuild.onnxkit.model.model_files import hand_on
from onnxbuild.onnxkit.sessions.custom_operators import (
    OperatorLibrary,
    operators_of,
    write_libraries,
)

_ENTRY = b"RegisterCustomOps"
_TWICE = "Domain already set in registry"
_CHUNK_BYTES = 1 << 24


@dataclass(frozen=True, slots=True)
class OperatorsParams:
    """Parameters of the step `operators`.

    Attributes:
        libraries: The files.
        nodes: PyTorch operator -> the ONNX operator that it becomes: what `export` reads.
    """

    libraries: Entrypoint
    nodes: Mapping[str, str] = field(default_factory=dict)


def run(context: StepContext) -> Outcome:
    """Copy the libraries into folders by platform, list them, and open a session with those of this one.

    Raises:
        StepError: One is no shared library, none is for this platform, one does not load, or it has no operators.
    """
    params: OperatorsParams = context.params
    folder = context.output("libraries")
    found: dict[str, OperatorLibrary] = {}
    for name, path in context.files(params.libraries):
        library = _taken(name, path, folder, context.where)
        if library.file in found:
            raise StepError(
                f"two libraries of operators.libraries for {library.platforms[0]} are named "
                f"{PurePosixPath(name).name}",
                where=context.where,
                fix="rename one of them",
            )
        found[library.file] = library
    libraries = tuple(found[file] for file in sorted(found))
    _check_platform(libraries, context.where)
    write_libraries(folder, libraries)
    _check_loads(folder, libraries, context)
    (context.output("nodes") / REPORT_FILE).write_bytes(canonical_json(dict(params.nodes)))
    platforms = sorted({each for library in libraries for each in library.platforms})
    return Outcome(
        {"libraries": len(libraries), "platforms": platforms}, notes=tuple(_notes(libraries))
    )


def _taken(name: str, path: Path, folder: Path, where: str) -> OperatorLibrary:
    """A library, copied below the folder."""
    platforms = platforms_of(path)
    if not platforms:
        raise StepError(
            f"{name} in operators.libraries is no shared library for Linux, macOS or Windows",
            where=where,
            fix="name the file that the compiler wrote: libNAME.so, libNAME.dylib or NAME.dll",
        )
    system = platforms[0].partition("-")[0]
    below = platforms[0] if len(platforms) == 1 else f"{system}-universal"
    file = f"{below}/{PurePosixPath(name).name}"
    (folder / below).mkdir(exist_ok=True)
    hand_on(path, folder / file)
    return OperatorLibrary(file, platforms, registers=_has_entry(path))


def _has_entry(path: Path) -> bool:
    """Return whether a library names the function that ONNX Runtime calls; others are loaded by those that do."""
    tail = b""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            if _ENTRY in tail + chunk:
                return True
            tail = chunk[1 - len(_ENTRY) :]
    return False


def _check_platform(libraries: tuple[OperatorLibrary, ...], where: str) -> None:
    here = this_platform()
    own = [each for each in libraries if here in each.platforms]
    if not own:
        shown = ", ".join(
            f"{PurePosixPath(each.file).name} is for {' and '.join(each.platforms)}"
            for each in libraries
        )
        raise StepError(
            f"operators.libraries has no library for this platform, {here}: {shown}",
            where=where,
            fix=f"compile it on {here}, and add that file to `operators.libraries`",
        )
    if not any(each.registers for each in own):
        names = ", ".join(PurePosixPath(each.file).name for each in own)
        raise StepError(
            f"no library of operators.libraries for {here} has the function RegisterCustomOps: {names}",
            where=where,
            fix='define `extern "C" OrtStatus* ORT_API_CALL RegisterCustomOps(OrtSessionOptions*, const '
            "OrtApiBase*)` in it, with default visibility",
        )


def _check_loads(
    folder: Path, libraries: tuple[OperatorLibrary, ...], context: StepContext
) -> None:
    """Open a session of one node with all of them, in a process that they may crash."""
    from onnxbuild.onnxkit.sessions.open import open_session

    value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    made = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    node = onnx.helper.make_node("Identity", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "identity", [value], [made])
    model = onnx.helper.make_model(
        graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 17)]
    )
    path = context.scratch / "identity.onnx"
    path.write_bytes(model.SerializeToString())

    def opened() -> None:
        with operators_of(folder):
            open_session(path, where=context.where)

    names = ", ".join(PurePosixPath(each.file).name for each in libraries)
    try:
        call_forked(opened, f"loading {names}", context.where)
    except StepError as error:
        if _TWICE not in error.what:
            raise
        raise StepError(
            f"two libraries of operators.libraries have operators of one domain: {names}",
            where=context.where,
            fix="remove one of them, or link them into one library",
        ) from error


def _notes(libraries: tuple[OperatorLibrary, ...]) -> Iterator[str]:
    for each in libraries:
        if not each.registers:
            name = PurePosixPath(each.file).name
            yield f"{name} has no RegisterCustomOps: it is shipped for the others, and not registered"


KIND = StepKind(
    name="operators",
    version=1,
    params=OperatorsParams,
    inputs=(),
    outputs={"libraries": "operators", "nodes": "report"},
    toolchain=("onnxruntime", "onnx"),
    run=run,
    user_code=True,
    entrypoints=lambda params: (params.libraries,),
)
