"""scikit-learn: a fitted estimator or Pipeline, converted by skl2onnx and held against itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.core.draft import Draft
from onnxbuild.core.params import option
from onnxbuild.core.source_error import SourceError
from onnxbuild.expansion.model_source import ModelSource, SourceFacts
from onnxbuild.frontend_steps.estimators import estimator_frontend, read_estimator
from onnxbuild.onnxkit.estimators.declared import look_with
from onnxbuild.onnxkit.estimators.files import TRUSTED, untrusted_types
from onnxbuild.onnxkit.estimators.made import SKLEARN
from onnxbuild.onnxkit.estimators.outlines import (
    PICKLES,
    SKOPS,
    EstimatorOutline,
    outline_of_sklearn,
)


@dataclass(frozen=True, slots=True)
class SklearnFileOptions:
    """Keys next to `sklearn` in `model`."""

    allow_pickle: bool = option(
        False, help="load a pickle, which may run any code; in the step's fence"
    )
    trusted: tuple[str, ...] = option(
        (), help="of a .skops file: names of types that may be loaded besides those skops trusts"
    )


def _read(
    path: Path,
    outline: EstimatorOutline,
    options: SklearnFileOptions,
    written: Mapping[str, Any],
) -> SourceFacts:
    """Read the facts of a scikit-learn file.

    Raises:
        SourceError: It is a pickle that the recipe does not allow, or the inputs are not known.
    """
    if path.suffix in PICKLES and not options.allow_pickle:
        raise SourceError(
            f"{path.name} is a pickle, which is a program: loading it may run any code",
            "save it by `skops.io.dump`, or if you know where it is from, write `allow_pickle: true` next "
            "to `sklearn` (`onnxbuild init --allow-pickle`)",
        )
    return read_estimator(path, outline, written, {TRUSTED: list(options.trusted)})


def _tried(
    path: Path,
    outline: EstimatorOutline,
    options: SklearnFileOptions,
    _written: Mapping[str, Any],
    _folder: Path,
) -> Draft | None:
    """Inputs of an estimator whose file does not say them; a pickle is loaded if the recipe allows it.

    Types of a .skops file that have to be trusted are named, and nothing is loaded.

    Raises:
        StepError: It can't be loaded.
    """
    if path.suffix == SKOPS and (types := untrusted_types(path)):
        said = "skops does not trust these types by itself: keep them if you know where the file is from"
        return Draft({"model": {TRUSTED: types}}, {f"model.{TRUSTED}": said})
    if outline.features or (path.suffix in PICKLES and not options.allow_pickle):
        return None
    from onnxbuild.onnxkit.estimators.estimator_draft import (
        draft_of_estimator_file,
    )  # `init` alone

    return draft_of_estimator_file(path, SKLEARN, {TRUSTED: list(options.trusted)})


FEATURE = estimator_frontend(
    SKLEARN,
    ModelSource(
        words="scikit-learn scikit_learn scikit",
        help="a .skops file of a fitted estimator or Pipeline, or a pickle (.joblib, .pkl) with "
        "`allow_pickle: true`, relative to this file",
        options=SklearnFileOptions,
        look=look_with(outline_of_sklearn),
        read=_read,
        tried=_tried,
        suffixes=(SKOPS, *PICKLES),
    ),
    "scikit-learn",
    "skl2onnx",
)
