"""The steps of a frontend whose framework runs in an environment of its own: convert, import, check; reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from onnxbuild.core.environment import Environment
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import FILE_DATA, Entrypoint, Recipe, Variant
from onnxbuild.core.step import StepKind
from onnxbuild.expansion.addresses import shared
from onnxbuild.expansion.diagnosis_hints import DiagnosisHints
from onnxbuild.expansion.evaluation import baseline_score
from onnxbuild.expansion.feature import Frontend
from onnxbuild.expansion.model_source import ModelSource
from onnxbuild.expansion.reference_plan import SECTION as REFERENCE
from onnxbuild.expansion.reference_plan import reference_plan
from onnxbuild.expansion.scope import Scope, Source
from onnxbuild.frontend_steps.checked_source import checked_source, raised
from onnxbuild.onnxkit.benchmark.baseline import Baseline
from onnxbuild.onnxkit.converters.requests import RENAME
from onnxbuild.onnxkit.ready_onnx.probes import AS_WRITTEN
from onnxbuild.steps import convert_model, framework_reference, import_converted

_ADVICE = ("the converter itself is wrong here: convert the model in another way",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """Conversion of a framework's models to ONNX.

    Attributes:
        convert: Gives `model`.
        reference: Gives `reference`.
        environment: Where the framework is installed, if a recipe names no other.
        baseline: Runs the model in the benchmark: a name in onnxkit/benchmark/baselines.py.
        last_opset: The last one that its converter writes; ONNX's version converter writes later ones.
        is_traced: Inputs, axes and outputs decide what the converter writes.
    """

    convert: StepKind
    reference: StepKind
    environment: Environment
    baseline: str
    last_opset: int
    is_traced: bool = False

    def converted(self, scope: Scope) -> OutputRef:
        """The step that runs the converter."""
        recipe = scope.recipe
        declared = (recipe.inputs, recipe.outputs, recipe.axes) if self.is_traced else ()
        params = convert_model.ConvertModelParams(
            _model(recipe),
            recipe.environment or self.environment,
            min(recipe.opset, self.last_opset),
            *declared,
        )
        step = scope.step(shared(recipe, "convert"), self.convert, params, section="model")
        return OutputRef(step, "model")

    def imported(self, scope: Scope) -> str:
        """The step that gives the model as the converter wrote it, under the recipe's names."""
        recipe, is_file = scope.recipe, scope.recipe.model.target == FILE_DATA
        return scope.step(
            shared(recipe, "import"),
            import_converted.KIND,
            import_converted.ImportConvertedParams(
                shown=recipe.model.files[0] if is_file else recipe.model.target,
                inputs=recipe.inputs,
                outputs=recipe.outputs,
                axes=recipe.axes,
                rename=_rename(recipe),
            ),
            {"model": self.converted(scope)},
            section="model",
        )

    def source(self, scope: Scope) -> Source:
        """Make canonical ONNX of the recipe's model, as a Frontend does."""
        recipe, imported = scope.recipe, self.imported(scope)
        model = OutputRef(imported, "model")
        if recipe.opset > self.last_opset:
            model = raised(scope, model)
        return checked_source(scope, model, OutputRef(imported, "config"), opset=None)

    def reference_of(
        self, scope: Scope, variant: Variant | None, fixed: Mapping[str, int]
    ) -> OutputRef:
        """Add the step that runs the framework itself at several points."""
        recipe = scope.recipe
        plan = reference_plan(recipe, variant, fixed)
        params = framework_reference.FrameworkReferenceParams(
            model=_model(recipe),
            environment=recipe.environment or self.environment,
            inputs=recipe.inputs,
            outputs=recipe.outputs,
            axes=plan.axes,
            samples=plan.samples,
            options=plan.options,
            rename=_rename(recipe),
        )
        step = scope.step(plan.address, self.reference, params, section=REFERENCE)
        return OutputRef(step, "reference")

    def baseline_of(self, scope: Scope) -> Baseline:
        """The framework itself, in its environment."""
        recipe = scope.recipe
        environment = recipe.environment or self.environment
        return Baseline(
            self.baseline,
            outputs=recipe.outputs,
            rename=_rename(recipe),
            environment=environment,
            toolchain=(environment.replaces,),
        )

    def score(self, scope: Scope) -> OutputRef | None:
        """The score of the converted model, without optimizations."""
        return baseline_score(scope, OutputRef(self.imported(scope), "model"), AS_WRITTEN)


def converting_frontend(name: str, conversion: Conversion, source: ModelSource) -> Frontend:
    """Return the frontend of a framework that runs in an environment of its own.

    Args:
        name: Its name.
        conversion: How its models become ONNX.
        source: How a recipe names one.
    """
    return Frontend(
        name=name,
        kinds=(conversion.convert, conversion.reference, import_converted.KIND),
        source=conversion.source,
        reference=conversion.reference_of,
        score=conversion.score,
        baseline=conversion.baseline_of,
        model_source=source,
        environment=conversion.environment,
        diagnosis=DiagnosisHints(advice={conversion.convert.name: _ADVICE}),
    )


def _model(recipe: Recipe) -> Entrypoint:
    """The model without what only the import needs."""
    args = {key: value for key, value in recipe.model.args.items() if key != RENAME}
    return replace(recipe.model, args=args) if recipe.model.target == FILE_DATA else recipe.model


def _rename(recipe: Recipe) -> Mapping[str, str]:
    is_file = recipe.model.target == FILE_DATA
    return cast("Mapping[str, str]", recipe.model.args[RENAME]) if is_file else {}
