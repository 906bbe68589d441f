"""The steps that measure: variants, programs and models from elsewhere on each target, and a search's trials."""

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from onnxbuild.core.graph import OutputRef, StepAddress
from onnxbuild.core.recipe import Recipe
from onnxbuild.core.target import Target
from onnxbuild.expansion.addresses import further, shared
from onnxbuild.expansion.scope import Comparison, ComparisonModel, Scope
from onnxbuild.expansion.sessions import VariantSession, target_inputs
from onnxbuild.onnxkit.benchmark.baseline import Baseline, on_target
from onnxbuild.onnxkit.benchmark.options import BenchmarkOptions
from onnxbuild.steps import benchmark, import_model


@dataclass(frozen=True, slots=True)
class ComparisonModels:
    """Models from elsewhere, by their names.

    Attributes:
        models: Those of ONNX.
        programs: Those that PyTorch runs.
    """

    models: Mapping[str, OutputRef] = field(default_factory=dict)
    programs: Mapping[str, OutputRef] = field(default_factory=dict)


def add_comparison_models(scope: Scope, comparison: Comparison) -> ComparisonModels:
    """Add what holds each to the recipe's inputs."""
    return ComparisonModels(
        {r.name: _model(scope, r) for r in comparison.models if not r.format},
        {r.name: _program(scope, r) for r in comparison.models if r.format},
    )


def _model(scope: Scope, model: ComparisonModel) -> OutputRef:
    params = import_model.ImportParams(model.model, model.shown, scope.recipe.inputs)
    step = scope.step(_address(scope.recipe, model), import_model.KIND, params)
    return OutputRef(step, "model")


def _program(scope: Scope, model: ComparisonModel) -> OutputRef:
    params = import_model.ImportProgramParams(
        model=model.model,
        name=model.shown,
        format=model.format,
        inputs=scope.recipe.inputs,
        axes=scope.recipe.axes,
    )
    step = scope.step(_address(scope.recipe, model), import_model.PROGRAM, params)
    return OutputRef(step, "program")


def _address(recipe: Recipe, model: ComparisonModel) -> StepAddress:
    return shared(recipe, f"against={model.name}")


SECTION = "benchmark"
PIPELINES = "benchmark-pipelines"
"""The step that measures models with raw inputs."""

_NOT_ASKED = "`benchmark.baseline` is false"


def add_benchmarks(
    scope: Scope,
    models: Mapping[str, OutputRef],
    sessions: Mapping[str, VariantSession],
    programs: Mapping[str, OutputRef],
) -> list[OutputRef]:
    """One report a target, each with the models from elsewhere that run there.

    Args:
        scope: The recipe, whose points and options count.
        models: Variant -> its model.
        sessions: Variant -> how its session runs it.
        programs: Format -> its program; measured on the home target alone.
    """
    recipe = scope.recipe
    compared = (
        ComparisonModels()
        if scope.comparison is None
        else add_comparison_models(scope, scope.comparison)
    )
    return [
        _measured(
            scope,
            shared(recipe, "benchmark", further(recipe, n)),
            {**models, **compared.models},
            target,
            sessions,
            programs={**programs, **compared.programs} if n == home_target(recipe) else {},
        )
        for n, target in enumerate(recipe.targets)
    ]


def is_measured(scope: Scope) -> bool:
    """Return whether variants are measured: unless `benchmark.measure` is false; `onnxbuild bench` always does."""
    options = scope.recipe.section(SECTION, BenchmarkOptions)
    return options.measure or scope.comparison is not None


def benchmark_of_trials(
    scope: Scope, address: StepAddress, models: Mapping[str, OutputRef], session: VariantSession
) -> OutputRef:
    """Add the report that ranks a search's trials by speed on the first target.

    Args:
        scope: The recipe, whose points and options count.
        models: Trial -> its model; one that is not applicable is left out.
        session: How each session runs it.
    """
    sessions = dict.fromkeys(models, session)
    target = scope.recipe.targets[0]
    return _measured(scope, address, models, target, sessions, programs={}, baseline=False)


def _compared_with(scope: Scope, measured: Collection[str]) -> tuple[str, ...]:
    """Names of models from elsewhere, of those that are measured."""
    models = () if scope.comparison is None else scope.comparison.models
    return tuple(each.name for each in models if each.name in measured)


def _measured(
    scope: Scope,
    address: StepAddress,
    models: Mapping[str, OutputRef],
    target: Target,
    sessions: Mapping[str, VariantSession],
    *,
    programs: Mapping[str, OutputRef],
    baseline: bool = True,
) -> OutputRef:
    recipe = scope.recipe
    options = recipe.section(SECTION, BenchmarkOptions)
    options = options if baseline else dataclasses.replace(options, baseline=False)
    asked = scope.baseline() if options.baseline else Baseline(absent=_NOT_ASKED)
    compared = on_target(asked, target)
    step = scope.step(
        address,
        benchmark.KIND,
        benchmark.BenchmarkParams(
            model=recipe.model,
            inputs=recipe.inputs,
            axes=recipe.axes,
            target=target,
            options=options,
            ranking=not baseline,
            comparison_models=_compared_with(scope, {*models, *programs}) if baseline else (),
            occasion=scope.comparison.measurement_id if scope.comparison and baseline else "",
            sessions={n: each.settings for n, each in sessions.items() if not each.steps},
            baseline=compared.baseline,
            environment=compared.environment,
            logits=recipe.outputs[0] if options.tokens else "",
        ),
        {
            **{f"program/{name}": ref for name, ref in programs.items()},
            **{f"model/{name}": ref for name, ref in models.items()},
            **{
                key: ref
                for name, each in sessions.items()
                for key, ref in each.inputs(target, "settings", f"session/{name}").items()
            },
            **target_inputs(scope, target),
            **compared.inputs,
        },
        section=SECTION,
        code=compared.toolchain,
        optional_inputs=() if baseline else tuple(f"model/{name}" for name in models),
    )
    return OutputRef(step, "report")


def home_target(recipe: Recipe) -> int:
    """The target with which programs of PyTorch are measured, on the CPU: that, or the first."""
    at_home = (n for n, each in enumerate(recipe.targets) if each.is_cpu and not each.environment)
    return next(at_home, 0)
