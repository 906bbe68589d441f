"""Resolve the paths of `bench --against`: files, bundles, releases."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.errors import UsageError
from onnxbuild.core.file_names import check_part
from onnxbuild.core.places import place_name
from onnxbuild.core.recipe import FILE_DATA, Entrypoint
from onnxbuild.core.step import MODEL_FILE, ORT_FILE
from onnxbuild.expansion.scope import ComparisonModel
from onnxbuild.onnxkit.programs.artifact_file import (
    PROGRAM_SUFFIXES,
    ProgramFormat,
    program_format,
)
from onnxbuild.release_format.bundles import section_bundles
from onnxbuild.release_format.forms import read_json
from onnxbuild.release_format.layout import MANIFEST, RELEASE_FILE
from onnxbuild.release_format.opened import opened
from onnxbuild.release_format.released import read_whole_release

_MODEL_SUFFIXES = (".onnx", ".ort")
_FIX = (
    "name an .onnx or .ort file, a program (.pt, .pt2), a folder that holds one of them "
    "(artifacts/out/RECIPE/VARIANT), or a release (its folder or .tar)"
)


@dataclass(frozen=True, slots=True)
class _Found:
    """One model.

    Attributes:
        name: In reports, if nothing else has it.
        file: Where it is.
        format: Of a PyTorch program; None for ONNX and ORT format.
        described: A manifest next to the file says how it is called.
    """

    name: str
    file: Path
    format: ProgramFormat | None = None
    described: bool = False


@contextmanager
def opened_comparison_models(
    against: Sequence[Path], taken: set[str]
) -> Iterator[tuple[ComparisonModel, ...]]:
    """The models that paths name; archives are unpacked for as long as they are looked at.

    Args:
        taken: Names that no model may have.

    Raises:
        UsageError: A path holds nothing of that kind.
        NotReproducibleError: A release is not as it was made.
    """
    names = set(taken)
    models: list[ComparisonModel] = []
    with ExitStack() as stack:
        for path in against:
            for found in stack.enter_context(_models(path)):
                unique = _unique(found.name, names)
                names.add(unique)
                models.append(_comparison_model(unique, f"{path}", found))
        yield tuple(models)


@contextmanager
def _models(path: Path) -> Iterator[list[_Found]]:
    bundle = "/".join(path.absolute().parts[-2:])
    if path.suffix in _MODEL_SUFFIXES and path.is_file():
        yield [_Found(path.stem, path)]
    elif path.suffix in PROGRAM_SUFFIXES and path.is_file():
        yield [_Found(path.stem, path, _format_of(path))]
    elif (path / RELEASE_FILE).is_file() or path.suffix == ".tar":
        with opened(path) as folder:
            yield _released(path, folder)
    elif program := _program_in(path):
        yield [_Found(bundle, program, _format_of(program), described=True)]
    elif (path / MODEL_FILE).is_file():
        yield [_Found(bundle, path / MODEL_FILE)]
    elif (path / ORT_FILE).is_file():
        yield [_Found(bundle, path / ORT_FILE, described=(path / MANIFEST).is_file())]
    else:
        there = "there is nothing at" if not path.exists() else "there is no model in"
        raise UsageError(f"{there} {path}", fix=_FIX)


def _program_in(bundle: Path) -> Path | None:
    """Return the program of a bundle; None where its manifest is of another kind of model, or none."""
    try:
        content = read_json((bundle / MANIFEST).read_bytes())
        is_program = content.get("by_keyword") is not None  # a program alone says so
        return bundle / check_part(content["file"]) if is_program else None
    except (OSError, ValueError, TypeError, AttributeError, LookupError):
        return None


def _format_of(path: Path) -> ProgramFormat:
    found = program_format(path)
    if found is None:
        raise UsageError(
            f"{path} holds no program: neither TorchScript's code, nor an exported graph, nor an "
            "AOTInductor package",
            fix="save a whole program: torch.jit.save, torch.export.save, or "
            "torch._inductor.aoti_compile_and_package; weights alone (torch.save) can't be run",
        )
    return found


def _released(path: Path, folder: Path) -> list[_Found]:
    """A release's ONNX variants, and its programs.

    Raises:
        NotReproducibleError: Its files are not those that it names, or it says what no release says.
    """
    release = read_whole_release(folder, path)
    version, found = release.about["version"], []
    for section, name, entry in section_bundles(release.about):
        bundle, shown = folder / entry["bundle"], f"{version}/{name}"
        if section.family.is_portable:
            found.append(_Found(shown, bundle / MODEL_FILE))
        elif program := _program_in(bundle):
            found.append(_Found(shown, program, _format_of(program), described=True))
    return found


def _unique(name: str, taken: set[str]) -> str:
    candidates = (name, *(f"{name}-{n}" for n in range(2, len(taken) + 3)))
    return next(each for each in candidates if each not in taken)


def _comparison_model(name: str, shown: str, found: _Found) -> ComparisonModel:
    """Declare the model's own file, and the files next to it that belong to it."""
    from onnxbuild.onnxkit.model.model_files import external_files

    if found.format is None and found.file.suffix == ".onnx":
        attached = external_files(found.file)
    else:
        attached = (MANIFEST,) if found.described else ()
    place = place_name(f"against {name.replace('/', ' ')}")
    names = tuple(f"{place}/{file}" for file in (found.file.name, *attached))
    outside = {place: found.file.absolute().parent.as_posix()}
    files = Entrypoint(FILE_DATA, files=names, outside=outside)
    return ComparisonModel(name, shown, files, found.format or "")
