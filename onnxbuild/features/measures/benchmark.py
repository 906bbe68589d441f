"""Latency, throughput and memory of all variants side by side, on each target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnxbuild.core.graph import OutputRef
from onnxbuild.expansion.benchmarks import SECTION, add_benchmarks, home_target
from onnxbuild.expansion.feature import Feature, Laid, Section, Subject
from onnxbuild.expansion.scope import Scope
from onnxbuild.steps import benchmark, import_model, import_program


def _laid(
    scope: Scope, subjects: Sequence[Subject], programs: Mapping[str, OutputRef]
) -> Mapping[str, Sequence[Laid]]:
    targets = scope.recipe.targets
    reports = add_benchmarks(
        scope,
        {each.variant.name: each.model for each in subjects},
        {each.variant.name: each.session for each in subjects},
        programs,
    )
    everywhere = [
        Laid(
            report,
            f"benchmark-{targets[number].name}.json" if number else "benchmark.json",
            targets[number].name,
        )
        for number, report in enumerate(reports)
    ]
    home = home_target(scope.recipe)
    at_home = Laid(reports[home], "benchmark.json", targets[home].name)
    return {
        **{each.variant.name: everywhere for each in subjects},
        **{name: [at_home] for name in programs},
    }


FEATURE = Feature(
    name=SECTION,
    sections=(Section(name=SECTION, options=benchmark.BenchmarkOptions),),
    kinds=(import_model.KIND, import_program.KIND, benchmark.KIND),
    laid=_laid,
)
