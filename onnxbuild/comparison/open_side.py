"""Say what a text on the command line means: a model file, a build, a variant, a release or a commit."""

import shlex
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from onnxbuild.adapters import git
from onnxbuild.comparison.build_side import commit_side, recipe_side
from onnxbuild.comparison.sides import ComparedBundle, Side, bundle_in
from onnxbuild.core.errors import NotReproducibleError, StepError, UsageError
from onnxbuild.core.step import MODEL_FILE
from onnxbuild.document.recipe_names import TypedName
from onnxbuild.onnxkit.benchmark.report import report_file
from onnxbuild.onnxkit.model.model_files import external_files
from onnxbuild.release_format.bundles import BUNDLE, artifact_below, manifest_in, section_bundles
from onnxbuild.release_format.figures import figures_of
from onnxbuild.release_format.forms import printable, read_json
from onnxbuild.release_format.layout import MANIFEST, RELEASE_FILE, release_name
from onnxbuild.release_format.opened import opened
from onnxbuild.release_format.released import Released, read_whole_release
from onnxbuild.typed.typed_names import FoundName, find_name, find_recipe

_RECIPE_ENDINGS = (".yaml", ".yml")
_WHAT = (
    "name an .onnx file, a recipe, a variant (RECIPE:VARIANT), a folder below out/, a release "
    "(dist/bert-1.0.0 or its .tar) or a commit (HEAD~1)"
)


def open_sides(
    texts: tuple[str, str], recipe: str | None, store: str | None, stack: ExitStack
) -> tuple[Side, Side]:
    """Return both sides.

    Args:
        recipe: `RECIPE` or `RECIPE:VARIANT`, of commits; None where the other side names it.
        store: `--store`.
        stack: Keeps what is unpacked or laid for as long as it is looked at.

    Raises:
        UsageError: A text means nothing that can be compared, or it is not built.
        NotReproducibleError: A release is not as it was made.
    """
    first: list[Side | None] = [_no_commit(text, store, stack) for text in texts]
    named = recipe_of(recipe, store) if recipe else _other_recipe(first)
    sides = []
    for text, side in zip(texts, first, strict=True):
        if side is not None:
            sides.append(side)
            continue
        _check_commit(text, named)
        if named is None:
            raise UsageError(
                f"'{text}' is a commit; of which recipe?",
                fix=f"onnxbuild diff {shlex.join(texts)} recipes/NAME.yaml",
            )
        sides.append(commit_side(text, named, store, stack))
    return sides[0], sides[1]


def _other_recipe(sides: list[Side | None]) -> FoundName | None:
    """The recipe of the side that names one, and its variant."""
    return next(
        (side.named for side in sides if side is not None and side.named is not None), None
    )


def recipe_of(text: str, store: str | None) -> FoundName:
    """Return the recipe and the variant (or none) of `RECIPE` or `RECIPE:VARIANT`."""
    if Path(text).is_file() or ":" not in text:
        return FoundName(TypedName(text, ""), find_recipe(text, store))
    return find_name(text, store, "VARIANT")


def _check_commit(text: str, named: FoundName | None) -> None:
    where = Path.cwd() if named is None else named.file.absolute().parent
    if git.commit_of(where, text) is not None:
        return
    if Path(text).suffix in (".onnx", ".tar", *_RECIPE_ENDINGS) or "/" in text:
        raise UsageError(f"there is no {text}", fix=_WHAT)
    raise UsageError(f"'{text}' is no file, recipe or commit here", fix=_WHAT)


def _no_commit(text: str, store: str | None, stack: ExitStack) -> Side | None:
    """The side that a text means; None where it can only be a commit."""
    path = Path(text)
    if path.is_file() and path.suffix in _RECIPE_ENDINGS:
        return recipe_side(FoundName(TypedName(text, ""), path), text, store, stack)
    if (path.is_file() and path.suffix == ".tar") or (path / RELEASE_FILE).is_file():
        return release_side(path, text, stack)
    if path.is_dir():
        return _folder_side(path, text)
    if path.is_file():
        return _model_side(path, text)
    if ":" in text:
        return recipe_side(find_name(text, store, "VARIANT"), text, store, stack)
    if "/" in text or path.suffix:
        return None
    try:
        named = recipe_of(text, store)
    except UsageError:
        return None
    return recipe_side(named, text, store, stack)


def _model_side(path: Path, text: str) -> Side:
    if path.suffix != ".onnx":
        raise UsageError(f"{path} is not an .onnx file", fix=_WHAT)
    try:
        names = (path.name, *external_files(path))
    except StepError as error:
        raise UsageError(error.what, where=error.where, fix=error.fix) from error
    sizes = [each.stat().st_size for name in names if (each := path.parent / name).is_file()]
    bundle = ComparedBundle("", path.name, model=path, size_bytes=sum(sizes))
    return Side(text, "model", text, (bundle,))


def _folder_side(path: Path, text: str) -> Side:
    """A bundle, or a folder of bundles, as below out/."""
    is_bundle = (path / MANIFEST).is_file()
    names = [path] if is_bundle else sorted(path.iterdir())
    folders = [each for each in names if (each / MANIFEST).is_file()]
    if not folders and (path / MODEL_FILE).is_file():
        return replace(_model_side(path / MODEL_FILE, text), title=text)
    if not folders:
        raise UsageError(f"there is no bundle in {path}: no manifest.json", fix=_WHAT)
    bundles = tuple(_measured(each) for each in folders)
    kept = [each for each in bundles if each.manifest is not None]
    return Side(text, "folder", text, tuple(kept), variant=path.name if is_bundle else "")


def _measured(folder: Path) -> ComparedBundle:
    """A bundle in a folder, with the measurements that are laid next to it."""
    bundle = bundle_in(folder)
    assert bundle.manifest is not None
    reports = {}
    for target in ("", *(bundle.manifest.targets or {})):
        try:
            report = read_json((folder / report_file(target)).read_bytes())
            if isinstance(report, dict) and isinstance(report.get("provider"), str):
                reports[report["provider"]] = report
        except (OSError, ValueError):
            continue
    try:
        return bundle_in(folder, reports=reports)
    except (KeyError, TypeError):
        return bundle  # measurements of another form


def release_side(path: Path, text: str, stack: ExitStack) -> Side:
    """Return a release; its checksums must hold.

    Args:
        path: Its folder or archive.

    Raises:
        UsageError: It is none.
        NotReproducibleError: Its files are not those that were released.
    """
    folder = stack.enter_context(opened(path))
    release = read_whole_release(folder, path)
    try:
        bundles = tuple(_released(release))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise NotReproducibleError(
            f"the release can't be read: {printable(f'{type(error).__name__}: {error}')}",
            where=str(path),
            fix=f"onnxbuild verify {shlex.quote(str(path))}",
        ) from error
    title = release_name(release.about["name"], release.about["version"])
    return Side(text, "release", title, bundles, release.lock)


def _released(release: Released) -> list[ComparedBundle]:
    found = []
    for _, name, entry in section_bundles(release.about):
        figures = figures_of(entry, manifest_in(entry, release.read), release.lock)
        bundle = bundle_in(
            release.folder / entry["bundle"], recipe=entry["recipe"], name=entry["variant"]
        )
        own = artifact_below(BUNDLE, entry["bundle"], release.files)
        found.append(replace(bundle, latencies=figures.latencies, sha256=own.sha256))
        del name
    return found
