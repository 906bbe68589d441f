"""scikit-learn: a fitted estimator or Pipeline, converted by skl2onnx and held against itself."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onnxbuild.core.draft import Draft
from onnxbuild.core.params import option
from onnxbuild.core.source_error import SourceError
from onnxbuild.expansion.model_source import ModelSource, SourceFacts, source_facts
from onnxbuild.frontend_steps.converted import estimator_frontend
from onnxbuild.onnxkit.estimators.made import SKLEARN, TRUSTED, untrusted_types
from onnxbuild.onnxkit.estimators.outlines import PICKLES, SKOPS, outline_of_sklearn
from onnxbuild.onnxkit.sources.outline import SourceOutline
from onnxbuild.onnxkit.sources.parts import mapping_in


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
    path: Path, outline: SourceOutline, options: SklearnFileOptions, written: Mapping[str, Any]
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
    if not outline.inputs and not mapping_in(written, "dummy_inputs"):
        raise SourceError(
            f"{path.name} does not say what its inputs are",
            "write `dummy_inputs: {features: {dtype: float32, shape: [batch, COLUMNS]}}`; for texts, "
            "`{text: {dtype: string, shape: [batch]}}`",
        )
    return source_facts(path, replace(outline, facts={TRUSTED: list(options.trusted)}), written)


def _tried(
    path: Path,
    outline: SourceOutline,
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
    if outline.inputs or (path.suffix in PICKLES and not options.allow_pickle):
        return None
    from onnxbuild.onnxkit.estimators.made import draft_of_estimator_file  # `init` alone

    return draft_of_estimator_file(path, SKLEARN, {TRUSTED: list(options.trusted)})


FEATURE = estimator_frontend(
    SKLEARN,
    ModelSource(
        words="scikit-learn scikit_learn scikit",
        help="a .skops file of a fitted estimator or Pipeline, or a pickle (.joblib, .pkl) with "
        "`allow_pickle: true`, relative to this file",
        options=SklearnFileOptions,
        look=outline_of_sklearn,
        read=_read,
        tried=_tried,
        suffixes=(SKOPS, *PICKLES),
    ),
    "scikit-learn",
    "skl2onnx",
)
