"""Frontends whose models a converter writes as ONNX: of estimators, and of frameworks in environments of their own."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from onnxbuild.core.environment import Environment
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import FILE_DATA, Entrypoint, Recipe, Variant
from onnxbuild.expansion.addresses import shared
from onnxbuild.expansion.diagnosis_hints import DiagnosisHints
from onnxbuild.expansion.evaluation import baseline_score
from onnxbuild.expansion.feature import Frontend
from onnxbuild.expansion.model_source import ModelSource, SourceFacts, facts_of_renamed
from onnxbuild.expansion.reference_plan import ReferencePlan
from onnxbuild.expansion.scope import Scope, Source
from onnxbuild.frontend_steps.shared_steps import add_reference, checked_source, raised
from onnxbuild.onnxkit.benchmark.baseline import Baseline
from onnxbuild.onnxkit.converters.frameworks import INPUTS, OUTPUTS, TF2ONNX_OPSET, Framework
from onnxbuild.onnxkit.ready_onnx.probes import AS_WRITTEN
from onnxbuild.onnxkit.sources.outline import SourceOutline
from onnxbuild.onnxkit.sources.renaming import RENAME
from onnxbuild.steps import convert_model, import_onnx, reference

_ADVICE = ("the converter itself is wrong here: convert the model in another way",)


def framework_frontend(
    framework: Framework, source: ModelSource, baseline: str, *, is_traced: bool = False
) -> Frontend:
    """Return the frontend of a framework that runs in an environment of its own.

    Args:
        framework: Its converter, and what runs its models.
        source: How a recipe names a model.
        baseline: Runs the model in the benchmark: a name in onnxkit/benchmark/baselines.py.
        is_traced: Inputs, axes and outputs decide what the converter writes.
    """
    steps = _Conversion(framework, baseline, is_traced)
    convert = convert_model.FRAMEWORKS[framework.name]
    return Frontend(
        name=framework.name,
        kinds=(convert, reference.FRAMEWORKS[framework.name], import_onnx.CONVERTED),
        source=steps.source,
        reference=steps.reference,
        score=steps.score,
        baseline=steps.baseline_of,
        model_source=source,
        environment=framework.environment,
        diagnosis=DiagnosisHints(advice={convert.name: _ADVICE}),
    )


@dataclass(frozen=True, slots=True)
class _Conversion:
    """The steps of a recipe whose framework runs elsewhere; see `framework_frontend`."""

    framework: Framework
    baseline: str
    is_traced: bool

    def _environment(self, recipe: Recipe) -> Environment:
        return recipe.environment or self.framework.environment

    def _imported(self, scope: Scope) -> str:
        """The steps that convert the model, and give it the recipe's names."""
        recipe, is_file = scope.recipe, scope.recipe.model.target == FILE_DATA
        declared = (recipe.inputs, recipe.outputs, recipe.axes) if self.is_traced else ()
        params = convert_model.ConvertModelParams(
            _model(recipe),
            self._environment(recipe),
            min(recipe.opset, self.framework.last_opset),
            *declared,
        )
        kind = convert_model.FRAMEWORKS[self.framework.name]
        converted = scope.step(shared(recipe, "convert"), kind, params, section="model")
        return scope.step(
            shared(recipe, "import"),
            import_onnx.CONVERTED,
            import_onnx.ImportConvertedParams(
                shown=recipe.model.files[0] if is_file else recipe.model.target,
                inputs=recipe.inputs,
                outputs=recipe.outputs,
                axes=recipe.axes,
                rename=_rename(recipe),
            ),
            {"model": OutputRef(converted, "model")},
            section="model",
        )

    def source(self, scope: Scope) -> Source:
        """Make canonical ONNX of the recipe's model, as a Frontend does."""
        imported = self._imported(scope)
        model = OutputRef(imported, "model")
        if scope.recipe.opset > self.framework.last_opset:
            model = raised(scope, model)
        return checked_source(scope, imported, opset=None, model=model)

    def reference(
        self, scope: Scope, variant: Variant | None, fixed: Mapping[str, int]
    ) -> OutputRef:
        """Add the step that runs the framework itself at several points."""
        recipe = scope.recipe

        def params(plan: ReferencePlan) -> reference.FrameworkReferenceParams:
            return reference.FrameworkReferenceParams(
                model=_model(recipe),
                environment=self._environment(recipe),
                inputs=recipe.inputs,
                outputs=recipe.outputs,
                axes=plan.axes,
                samples=plan.samples,
                options=plan.options,
                rename=_rename(recipe),
            )

        kind = reference.FRAMEWORKS[self.framework.name]
        return add_reference(scope, (variant, fixed), kind, params)

    def baseline_of(self, scope: Scope) -> Baseline:
        """The framework itself, in its environment."""
        recipe = scope.recipe
        environment = self._environment(recipe)
        return Baseline(
            self.baseline,
            outputs=recipe.outputs,
            rename=_rename(recipe),
            environment=environment,
            toolchain=(environment.replaces,),
        )

    def score(self, scope: Scope) -> OutputRef | None:
        """The score of the converted model, without optimizations."""
        return baseline_score(scope, OutputRef(self._imported(scope), "model"), AS_WRITTEN)


def facts_of_signature(
    path: Path, outline: SourceOutline, rename: Mapping[str, str], written: Mapping[str, Any]
) -> SourceFacts:
    """Return the facts of a model that tf2onnx converts, with its own names of inputs and outputs.

    Args:
        path: The model's, absolute.
        rename: Its names of inputs and outputs -> the recipe's.
        written: The recipe as it is written, rendered; values may be anything.

    Raises:
        SourceError: No recipe can declare it.
    """
    opset = written.get("opset")
    named = {
        INPUTS: [each.name for each in outline.inputs],
        OUTPUTS: [each.name for each in outline.outputs],
    }
    as_onnx = replace(
        outline,
        opset=opset if type(opset) is int else TF2ONNX_OPSET,
        facts={**outline.facts, **named},
    )
    return facts_of_renamed(path, as_onnx, rename, written)


def _model(recipe: Recipe) -> Entrypoint:
    """The model without what only the import needs."""
    args = {key: value for key, value in recipe.model.args.items() if key != RENAME}
    return replace(recipe.model, args=args) if recipe.model.target == FILE_DATA else recipe.model


def _rename(recipe: Recipe) -> Mapping[str, str]:
    is_file = recipe.model.target == FILE_DATA
    return cast("Mapping[str, str]", recipe.model.args[RENAME]) if is_file else {}


def estimator_frontend(name: str, source: ModelSource, *packages: str) -> Frontend:
    """Return the frontend of a family of estimators.

    Args:
        name: Key of the step kinds.
        packages: Those that the extra of this name brings; the first has the runner of the baseline.
    """
    return Frontend(
        name=name,
        extras=dict.fromkeys(packages, name),
        kinds=(convert_model.ESTIMATORS[name], reference.ESTIMATORS[name]),
        source=partial(_estimator_source, name),
        reference=partial(_estimator_reference, name),
        score=lambda scope: baseline_score(
            scope, OutputRef(_estimator(name, scope), "model"), AS_WRITTEN
        ),
        baseline=lambda scope: Baseline(
            packages[0],
            outputs=scope.recipe.outputs,
            toolchain=tuple(dict.fromkeys((packages[0], "scikit-learn"))),
        ),
        model_source=source,
    )


def _estimator(name: str, scope: Scope) -> str:
    """The step that converts an estimator."""
    recipe = scope.recipe
    return scope.step(
        shared(recipe, "convert"),
        convert_model.ESTIMATORS[name],
        convert_model.ConvertEstimatorParams(
            frontend=name,
            model=recipe.model,
            inputs=recipe.inputs,
            outputs=recipe.outputs,
            axes=recipe.axes,
            opset=recipe.opset,
        ),
        section="model",
    )


def _estimator_source(name: str, scope: Scope) -> Source:
    return checked_source(scope, _estimator(name, scope), opset=scope.recipe.opset)


def _estimator_reference(
    name: str, scope: Scope, variant: Variant | None, fixed: Mapping[str, int]
) -> OutputRef:
    """Add the step that runs the estimator itself at several points."""
    recipe = scope.recipe

    def params(plan: ReferencePlan) -> reference.EstimatorReferenceParams:
        return reference.EstimatorReferenceParams(
            frontend=name,
            model=recipe.model,
            inputs=recipe.inputs,
            outputs=recipe.outputs,
            axes=plan.axes,
            samples=plan.samples,
            points=plan.options.points,
            seed=plan.options.seed,
            max_samples=plan.options.max_samples,
        )

    return add_reference(scope, (variant, fixed), reference.ESTIMATORS[name], params)
