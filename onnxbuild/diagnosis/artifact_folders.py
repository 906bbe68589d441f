"""Artifacts of a build as folders to read."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from onnxbuild.building.api import BuildResult, Request
from onnxbuild.building.wiring import open_workspace
from onnxbuild.core.artifact import Artifact


@contextmanager
def artifacts_shown(
    request: Request, result: BuildResult, steps: Iterable[str]
) -> Iterator[Mapping[str, Path]]:
    """Step -> a folder that shows its artifact, to be written into; gone afterwards.

    Of a step with several outputs it is the model; steps without a result are left out.

    Args:
        request: What was built.
        result: Its result.
        steps: Names, aliases included.
    """
    workspace = open_workspace(request.project, result.store, make=False)
    try:
        with tempfile.TemporaryDirectory(prefix="onnxbuild-diagnose-") as scratch:
            folders = {}
            for number, step in enumerate(steps):
                artifact = artifact_of(result, step)
                if artifact is None:
                    continue
                folders[step] = Path(scratch) / str(number)
                _show(folders[step], workspace.store.paths(artifact), artifact)
            yield folders
    finally:
        workspace.close()


def artifact_of(result: BuildResult, step: str) -> Artifact | None:
    """Return a step's artifact: its model, or its first output; None if it made nothing."""
    made = result.report.results.get(result.graph.resolve(step))
    if made is None or not made.outputs:
        return None
    return made.outputs.get("model") or next(iter(made.outputs.values()))


def size_bytes(artifact: Artifact) -> int:
    """Size of all its files."""
    return sum(digest.size_bytes for _, digest in artifact.files)


def _show(folder: Path, blobs: Mapping[str, Path], artifact: Artifact) -> None:
    for path, _ in artifact.files:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(blobs[path].absolute())
