"""The files of two bundles next to their models, and how their manifests say that the models are run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from onnxbuild.comparison.sides import ComparedBundle
from onnxbuild.onnxkit.bundles.manifest import (
    EVALUATION_FILE,
    GATES_FILE,
    MANIFEST_FILE,
    SUMS_FILE,
    VALIDATION_FILE,
    run_facts,
)
from onnxbuild.onnxkit.differences.artifacts import (
    ArtifactDifference,
    file_difference,
    json_difference,
)
from onnxbuild.onnxkit.model.external_data import is_name_below
from onnxbuild.onnxkit.model.model_files import external_files

_REPORTS = frozenset({VALIDATION_FILE, EVALUATION_FILE, GATES_FILE})
"""They follow from the model: reported only where the models are equal."""


def other_files(
    old: ComparedBundle, new: ComparedBundle, *, same_model: bool
) -> Iterator[ArtifactDifference]:
    """Yield one difference for each file that differs, of those that are no model.

    Args:
        old: With a model, and a folder if it is a bundle.
        new: Likewise.
        same_model: Whether the models have the same bytes.

    Raises:
        StepError: A model can't be read.
    """
    if old.manifest is None or new.manifest is None:
        return
    ones, others = _listed(old), _listed(new)
    for name in sorted(ones.keys() | others.keys()):
        if name in _REPORTS and not same_model:
            continue
        if name not in others:
            yield ArtifactDifference(name, "this file is gone")
        elif name not in ones:
            yield ArtifactDifference(name, "this file is new")
        elif (found := file_difference(name, ones[name], others[name])) is not None:
            yield found
    said = json_difference(run_facts(old.manifest), run_facts(new.manifest))
    if said:
        yield ArtifactDifference(MANIFEST_FILE, said)


def _listed(bundle: ComparedBundle) -> dict[str, Path]:
    """The files that the manifest lists, as far as they are there; in out/ there are measurements next to them."""
    folder, manifest, model = bundle.folder, bundle.manifest, bundle.model
    assert folder is not None
    assert manifest is not None
    assert model is not None
    others = {manifest.file, MANIFEST_FILE, SUMS_FILE, *external_files(model)}
    names = [name for name in manifest.files if name not in others and is_name_below(name)]
    return {name: path for name in names if (path := folder / name).is_file()}
