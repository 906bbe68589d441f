"""The step that measures all pipelines side by side, with raw inputs."""

import dataclasses
from collections.abc import Mapping, Sequence

from onnxbuild.core.graph import OutputRef
from onnxbuild.expansion.addresses import further, shared
from onnxbuild.expansion.benchmarks import PIPELINES, is_measured
from onnxbuild.expansion.benchmarks import SECTION as BENCHMARK
from onnxbuild.expansion.feature import ExtraReport, Subject
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.sessions import target_inputs
from onnxbuild.features.settings.processing.options import SECTION, options_of, texts_of
from onnxbuild.features.settings.processing.pipelines import Merged, merged
from onnxbuild.onnxkit.benchmark.baseline import Baseline
from onnxbuild.onnxkit.benchmark.options import BenchmarkOptions
from onnxbuild.steps import benchmark

_NO_BASELINE = "a pipeline takes raw inputs, which the model in its own framework does not"


def lay_benchmarks(
    scope: Scope, subjects: Sequence[Subject], _: Mapping[str, OutputRef]
) -> Mapping[str, Sequence[ExtraReport]]:
    """Pipeline -> its benchmark on each target; all of the recipe are measured in one step."""
    pairs = [(each, merged(scope, each)) for each in subjects]
    made = {found.name: (each, found) for each, found in pairs if found is not None}
    if not made or not is_measured(scope):
        return {}
    laid = []
    for number, target in enumerate(scope.recipe.targets):
        report = _measured(scope, made, number)
        file = f"benchmark-{target.name}.json" if number else "benchmark.json"
        laid.append(ExtraReport(report, file, target.name))
    return dict.fromkeys(made, laid)


def _measured(scope: Scope, made: Mapping[str, tuple[Subject, Merged]], number: int) -> OutputRef:
    recipe = scope.recipe
    target = recipe.targets[number]
    options = recipe.section(BENCHMARK, BenchmarkOptions)
    _, first = next(iter(made.values()))
    step = scope.step(
        shared(recipe, PIPELINES, further(recipe, number)),
        benchmark.KIND,
        benchmark.BenchmarkParams(
            model=recipe.model,
            inputs=first.inputs,
            axes=first.axes,
            target=target,
            options=dataclasses.replace(
                options, points=options_of(recipe).points, baseline=False, compile=False
            ),
            ranking=False,
            occasion=scope.comparison.measurement_id if scope.comparison else "",
            sessions={
                name: subject.session.settings
                for name, (subject, _) in made.items()
                if not subject.session.steps
            },
            texts=texts_of(recipe),
            baseline=Baseline(absent=_NO_BASELINE),
        ),
        {
            **{f"model/{name}": found.model for name, (_, found) in made.items()},
            **target_inputs(scope, target),
        },
        section=SECTION,
    )
    return OutputRef(step, "report")
