"""Write a bundle: the model's files, reports, load.py, a C++ example, the manifest and checksums."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from onnxbuild.core.digest import Digest
from onnxbuild.core.params import from_json
from onnxbuild.core.step import REPORT_FILE, Outcome, StepContext
from onnxbuild.onnxkit.bundles.cpp_examples import write_example
from onnxbuild.onnxkit.bundles.manifest import (
    EXAMPLE_FOLDER,
    LOADER_FILE,
    MANIFEST_FILE,
    OPERATORS_FOLDER,
    RUN_FILE,
    SUMS_FILE,
    TOKENIZER_FOLDER,
    Manifest,
    Value,
    Verdict,
    model_bytes,
    to_manifest,
)
from onnxbuild.onnxkit.loaders.script import load_script, run_script
from onnxbuild.onnxkit.model.model_files import hand_on
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions.custom_operators import (
    OPERATORS_INPUT,
    OperatorLibrary,
    read_libraries,
)

_CHUNK_BYTES = 1 << 20


def write_bundle(
    bundle: Path,
    source: Path,
    names: Sequence[str],
    draft: Manifest,
    reports: Mapping[str, Mapping[str, Any]],
    *,
    libraries: Path | None = None,
    tokenizer: Sequence[Path] = (),
) -> Outcome:
    """Write all files of a bundle; the same inputs give the same bytes: no time, path or host.

    Args:
        source: Holds the model's files.
        draft: The manifest without sizes and digests of files.
        reports: File -> what it says of each target; nothing is written where there is none.
        libraries: Holds the libraries of custom operators; None where the model needs none.
        tokenizer: Files that a decoder's run.py makes ids of texts by.
    """
    for name in names:
        target = bundle / name
        target.parent.mkdir(parents=True, exist_ok=True)
        hand_on(source / name, target)
    for name, by_target in reports.items():
        if by_target:
            write_report(bundle, by_target, name)
    if libraries is not None:
        draft = replace(draft, operators=_with_libraries(bundle, libraries))
    script = load_script(draft.runtime, operators=bool(draft.operators))
    (bundle / LOADER_FILE).write_text(script, encoding="utf-8", newline="\n")
    if draft.decoder is not None:
        (bundle / RUN_FILE).write_text(run_script(), encoding="utf-8", newline="\n")
        for file in tokenizer:
            (bundle / TOKENIZER_FOLDER).mkdir(exist_ok=True)
            hand_on(file, bundle / TOKENIZER_FOLDER / file.name)
    write_example(bundle / EXAMPLE_FOLDER, draft)
    files = {name: described(bundle / name) for name in names_below(bundle)}
    size = model_bytes(files)
    manifest = replace(draft, files=files, size_bytes=size)
    write_report(bundle, to_manifest(manifest), MANIFEST_FILE)
    listed = write_sums(bundle, {**files, MANIFEST_FILE: described(bundle / MANIFEST_FILE)})
    return Outcome(metrics={"model_bytes": size, "files": listed})


def libraries_of(context: StepContext) -> Path | None:
    """Return the folder of a step's libraries of custom operators; None where it has none."""
    return context.input(OPERATORS_INPUT) if OPERATORS_INPUT in context.input_names else None


def _with_libraries(bundle: Path, libraries: Path) -> tuple[OperatorLibrary, ...]:
    """Hand the libraries on to the bundle, and say where they are in it."""
    listed = []
    for each in read_libraries(libraries):
        file = f"{OPERATORS_FOLDER}/{each.file}"
        (bundle / file).parent.mkdir(parents=True, exist_ok=True)
        hand_on(libraries / each.file, bundle / file)
        listed.append(replace(each, file=file))
    return tuple(listed)


def write_sums(folder: Path, known: Mapping[str, Digest] | None = None) -> list[str]:
    """Write SHA256SUMS; return the names of all files, its own last.

    Args:
        folder: Folder whose files are listed.
        known: The digests of all its files; None to compute them.
    """
    files = (
        {name: described(folder / name) for name in names_below(folder)}
        if known is None
        else known
    )
    sums = "".join(f"{files[name].sha256}  {name}\n" for name in sorted(files))
    (folder / SUMS_FILE).write_text(sums, encoding="utf-8", newline="\n")
    return [*sorted(files), SUMS_FILE]


def reports_of(context: StepContext, group: str) -> dict[str, Any]:
    """Return target -> report, of the inputs `group`/TARGET."""
    return {
        name.partition("/")[2]: read_report(context.input(name))
        for name in context.input_names
        if name.startswith(f"{group}/")
    }


def read_report(folder: Path) -> dict[str, Any]:
    """Read the report that a gate wrote."""
    found: dict[str, Any] = json.loads((folder / REPORT_FILE).read_text("utf-8"))
    return found


def verdict_of(report: Mapping[str, Any]) -> Verdict:
    """Return what a manifest says of a gate's report."""
    return Verdict(*(report.get(key) for key in ("passed", "tolerances", "metrics")))


def values(described: Sequence[Mapping[str, Any]]) -> tuple[Value, ...]:
    """Return inputs or outputs as `summarize` describes them."""
    return tuple(from_json(Value, each) for each in described)


def versions_of(onnxbuild: str, *packages: str) -> dict[str, str]:
    """Return the versions of this program and of the packages that made or run a model."""
    return {"onnxbuild": onnxbuild, **{name: _version(name) for name in packages}}


def names_below(folder: Path) -> list[str]:
    """Return all files below a folder, POSIX paths relative to it, sorted."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def described(path: Path) -> Digest:
    """Return a file's size and digest."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return Digest(digest.hexdigest(), path.stat().st_size)


def _version(package: str) -> str:
    if package == "onnxruntime":  # its distributions have several names
        import onnxruntime

        return str(onnxruntime.__version__)
    from importlib import metadata  # slow to import

    return metadata.version(package)
