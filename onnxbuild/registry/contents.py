"""Collect the contents of a push: a bundle of an up-to-date build, or a release."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnxbuild.adapters.disk.locks import wait_lock
from onnxbuild.adapters.store.delivery import Blob, Content
from onnxbuild.building.api import Request, graph_of, plan
from onnxbuild.building.type_again import run_again
from onnxbuild.building.wiring import open_workspace
from onnxbuild.core.errors import UsageError
from onnxbuild.core.graph import Deliverable
from onnxbuild.core.step import StepKind
from onnxbuild.engine.plan import Planned
from onnxbuild.onnxkit.bundles.manifest import read_manifest
from onnxbuild.onnxkit.oci.layout import MARK_FILE
from onnxbuild.onnxkit.oci.manifests import REVISION, TITLE, VERSION, described, technical_facts
from onnxbuild.release_format.checksums import check_sums
from onnxbuild.release_format.forms import read_json
from onnxbuild.release_format.layout import MANIFEST, PROVENANCE_FILE, RELEASE_FILE, SIGNATURES
from onnxbuild.release_format.opened import opened
from onnxbuild.release_format.released import damaged, read_release
from onnxbuild.release_format.tree import Tree, bytes_of
from onnxbuild.typed.typed_names import find_deliverable, find_name
from onnxbuild.verification.signature import check_signatures

_ONNX = "onnx"


@dataclass(frozen=True, slots=True)
class Contents:
    """Contents of a push.

    Attributes:
        name: What a person calls it: `digits:int8`, `digits-1.0.0`.
        files: Path -> content; each is a layer.
        attached: Signature and provenance, by file name.
        about: The config's `descriptor`.
        technical: The config's `config`.
        annotations: Of the manifest.
        is_release: Whether it is a release.
    """

    name: str
    files: Tree
    attached: Mapping[str, bytes] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    technical: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    is_release: bool = False


@contextmanager
def contents_of(
    source: str, store: str | None, catalog: Mapping[str, StepKind]
) -> Iterator[Contents]:
    """The contents that a person names; what they are read from stays until the end.

    Args:
        source: RECIPE:VARIANT, or the folder or archive of a release.
        store: `--store`.
        catalog: Step kinds by name.

    Raises:
        UsageError: There is no such thing, or it is not built as its recipe says.
        NotReproducibleError: The release is damaged.
        BuildError: A gate fails.
    """
    path = Path(source)
    if path.is_dir() or (path.is_file() and not source.endswith((".yaml", ".yml"))):
        with opened(path) as folder:
            yield _release(folder, source)
    elif path.is_file():
        what = f"{source} holds several variants, each pushed on its own"
        raise UsageError(what, fix=f"onnxbuild push {path.stem}:VARIANT REGISTRY/REPOSITORY:TAG")
    elif ":" not in source:
        raise UsageError(
            f"there is no release '{source}', and it is not RECIPE:VARIANT",
            fix="name the folder or the archive of a release, or a variant, RECIPE:VARIANT",
        )
    else:
        with _variant(source, store, catalog) as found:
            yield found


def _release(folder: Path, source: str) -> Contents:
    if not (folder / RELEASE_FILE).is_file():
        raise UsageError(
            f"{source} is no release: it has no {RELEASE_FILE}",
            fix="name a release, or a variant as RECIPE:VARIANT",
        )
    files = check_sums(folder)
    is_signed = any(name in files.digests for name in SIGNATURES)
    faults = [*files.faults, *(check_signatures(files, None) if is_signed else ())]
    if faults:
        raise damaged(faults[0], source)
    about = read_release(files).about
    name, commit = f"{about['name']}-{about['version']}", about["source"]["commit"]
    revision = {} if commit is None else {"revision": commit}
    attached = SIGNATURES if is_signed else (PROVENANCE_FILE,)
    return Contents(
        name,
        {
            path: Blob(folder / path, digest)
            for path, digest in files.digests.items()
            if path not in SIGNATURES
        },
        {path: files.read(path) for path in attached},
        {"name": about["name"], "title": name, "version": about["version"], **revision},
        {"format": _ONNX} if about["variants"] else {},
        {TITLE: name, VERSION: about["version"], **({REVISION: commit} if commit else {})},
        is_release=True,
    )


@contextmanager
def _variant(text: str, store: str | None, catalog: Mapping[str, StepKind]) -> Iterator[Contents]:
    asked = find_name(text, store, "VARIANT")
    request = Request((asked.file,), store=store)
    whole = graph_of(request)
    found = find_deliverable(whole, asked)
    graph = whole.pruned([found.bundle.step, *found.judged_by])
    root = request.store_root
    lock = wait_lock(root / "locks" / "store", shared=True) if root.is_dir() else None
    try:
        planned = {each.step: each for each in plan(request, graph, catalog=catalog)}
        name = f"{found.recipe}:{found.name}"
        _check_up_to_date(name, planned, run_again(asked.file, None, store, only=name))
        artifact = planned[graph.resolve(found.bundle.step)].outputs[found.bundle.output]
        if any(path == MARK_FILE for path, _ in artifact.files):
            what = f"{found.recipe}:{found.name} is an OCI layout, which would be pushed as files of an artifact"
            fix = f"push what it was made of: `onnxbuild push {found.recipe}:{found.of} REGISTRY/REPOSITORY:TAG`"
            raise UsageError(what, fix=fix)
        with closing(open_workspace(request.project, root, make=False)) as workspace:
            paths = workspace.store.paths(artifact)
            files: dict[str, Content] = {
                path: Blob(paths[path], digest) for path, digest in artifact.files
            }
            yield _bundle(found, files)
    finally:
        if lock is not None:
            lock.release()


def _check_up_to_date(name: str, planned: Mapping[str, Planned], command: str) -> None:
    """Refuse what is not built as its recipe says now.

    Args:
        name: `RECIPE:VARIANT`.

    Raises:
        UsageError: A step would run.
        BuildError: One can't, or its gate fails.
    """
    for each in planned.values():
        if each.error is not None:
            raise each.error
    first = next((each for each in planned.values() if not each.hit and not each.left_out), None)
    if first is not None:
        why = f" ({'; '.join(map(str, first.reasons))})" if first.reasons else ""
        raise UsageError(
            f"{name} is not built from the present recipe: {first.step} would run{why}",
            fix=command,
        )


def _bundle(found: Deliverable, files: Tree) -> Contents:
    title = f"{found.recipe}:{found.name}"
    about = described(found.recipe, title)
    technical = _technical(files)
    return Contents(title, files, {}, about, technical, {TITLE: title})


def _technical(files: Tree) -> dict[str, str]:
    """The config's technical part; empty where a package has a manifest.json of its own, which is no bundle's."""
    if MANIFEST not in files:
        return {}
    try:
        return technical_facts(read_manifest(read_json(bytes_of(files[MANIFEST]))))
    except ValueError:
        return {}
