"""The steps of the frontends `sklearn`, `xgboost` and `lightgbm`, and what their files say of a recipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Variant
from onnxbuild.expansion.addresses import shared
from onnxbuild.expansion.evaluation import baseline_score
from onnxbuild.expansion.feature import Frontend
from onnxbuild.expansion.model_source import ModelSource, NoOptions, SourceFacts
from onnxbuild.expansion.reference_plan import SECTION as REFERENCE
from onnxbuild.expansion.reference_plan import reference_plan
from onnxbuild.expansion.scope import Scope, Source
from onnxbuild.frontend_steps.checked_source import checked_source
from onnxbuild.onnxkit.benchmark.baseline import Baseline
from onnxbuild.onnxkit.estimators.declared import declared_by, look_with, recognized_by
from onnxbuild.onnxkit.estimators.outlines import EstimatorOutline
from onnxbuild.onnxkit.ready_onnx.probes import AS_WRITTEN
from onnxbuild.steps import convert_estimator, estimator_reference


def estimator_frontend(name: str, source: ModelSource, *packages: str) -> Frontend:
    """Return the frontend of a family of estimators.

    Args:
        name: Key of the step kinds.
        source: Its files.
        packages: Those that the extra of this name brings; the first has the runner of the baseline.
    """
    return Frontend(
        name=name,
        extras=dict.fromkeys(packages, name),
        kinds=(convert_estimator.KINDS[name], estimator_reference.KINDS[name]),
        source=partial(_source, name),
        reference=partial(_reference, name),
        score=partial(_score, name),
        baseline=partial(_baseline, packages[0]),
        model_source=source,
    )


def _baseline(package: str, scope: Scope) -> Baseline:
    """The estimator itself, next to onnxbuild; all families are read through scikit-learn."""
    toolchain = tuple(dict.fromkeys((package, "scikit-learn")))
    return Baseline(package, outputs=scope.recipe.outputs, toolchain=toolchain)


def _converted(name: str, scope: Scope) -> str:
    recipe = scope.recipe
    return scope.step(
        shared(recipe, "convert"),
        convert_estimator.KINDS[name],
        convert_estimator.ConvertEstimatorParams(
            frontend=name,
            model=recipe.model,
            inputs=recipe.inputs,
            outputs=recipe.outputs,
            axes=recipe.axes,
            opset=recipe.opset,
        ),
        section="model",
    )


def _source(name: str, scope: Scope) -> Source:
    converted = _converted(name, scope)
    model, config = OutputRef(converted, "model"), OutputRef(converted, "config")
    return checked_source(scope, model, config, opset=scope.recipe.opset)


def _reference(
    name: str, scope: Scope, variant: Variant | None, fixed: Mapping[str, int]
) -> OutputRef:
    """Add the step that runs the estimator itself at several points."""
    recipe = scope.recipe
    plan = reference_plan(recipe, variant, fixed)
    step = scope.step(
        plan.address,
        estimator_reference.KINDS[name],
        estimator_reference.EstimatorReferenceParams(
            frontend=name,
            model=recipe.model,
            inputs=recipe.inputs,
            outputs=recipe.outputs,
            axes=plan.axes,
            samples=plan.samples,
            points=plan.options.points,
            seed=plan.options.seed,
            max_samples=plan.options.max_samples,
        ),
        section=REFERENCE,
    )
    return OutputRef(step, "reference")


def _score(name: str, scope: Scope) -> OutputRef | None:
    """The score of the converted model, without optimizations."""
    return baseline_score(scope, OutputRef(_converted(name, scope), "model"), AS_WRITTEN)


def booster_source(
    outline_of: Callable[[Path], EstimatorOutline], suffixes: tuple[str, ...], about: str
) -> ModelSource:
    """Return the source of files that hold no code and need no options.

    Args:
        outline_of: Reads one.
        suffixes: Endings of such files' names, which many others have, too.
        about: One line.
    """

    def read(
        path: Path, outline: EstimatorOutline, _: NoOptions, written: Mapping[str, Any]
    ) -> SourceFacts:
        return read_estimator(path, outline, written)

    return ModelSource(
        help=f"{about}, relative to this file: it says how many columns its rows have",
        look=look_with(outline_of),
        read=read,
        recognizes=recognized_by(outline_of, suffixes),
    )


def read_estimator(
    path: Path,
    outline: EstimatorOutline,
    written: Mapping[str, Any],
    facts: Mapping[str, Any] | None = None,
) -> SourceFacts:
    """Return the facts of an estimator's file, with `facts` for the steps; raises as `declared_by`."""
    declared = declared_by(path.name, outline, written)
    return SourceFacts(files=(path,), read=(path,), recipe=declared, facts=dict(facts or {}))
