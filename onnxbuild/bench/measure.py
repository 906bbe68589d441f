"""Measure a recipe's variants now, next to models from elsewhere: `bench`."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onnxbuild.adapters.clock import run_id
from onnxbuild.bench.external_models import opened_comparison_models
from onnxbuild.building.api import BuildResult, Request, build, load
from onnxbuild.building.wiring import RunOptions, Workspace
from onnxbuild.core.ports import EventSink, Executor
from onnxbuild.core.step import REPORT_FILE
from onnxbuild.expansion.scope import Comparison


@dataclass(frozen=True, slots=True)
class Bench:
    """Reports of a measurement.

    Attributes:
        result: The build's.
        reports: Recipe -> provider -> the report; only those that were made. Where several steps measure on a
            provider (what takes other inputs has one of its own), `PROVIDER (STEP)` from the second on.
    """

    result: BuildResult
    reports: dict[str, dict[str, Any]]


def bench(
    request: Request,
    against: Sequence[Path],
    options: RunOptions | None = None,
    events: Sequence[EventSink] = (),
    *,
    make_executor: Callable[[Workspace], Executor] | None = None,
) -> Bench:
    """Build the variants, and measure them with the models of `against`, interleaved in one process.

    Args:
        against: ONNX files, programs (.pt, .pt2), bundles (`out/RECIPE/VARIANT`), releases
            (folders or archives).
        options: How to use the machine.
        events: Sinks for all events.
        make_executor: As for `api.build`.

    Raises:
        UsageError: Something in `against` is none of these.
        RecipeErrors: The recipes are faulty.
    """
    recipes = load(request).recipes
    taken = {each.name for recipe in recipes for each in recipe.variants}
    taken |= {each.name for recipe in recipes for each in recipe.formats}
    with opened_comparison_models(against, taken) as models:
        comparison = Comparison(models, run_id())
        result = build(
            replace(request, comparison=comparison), options, events, make_executor=make_executor
        )
        return Bench(result, _reports(result))


def _reports(result: BuildResult) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, step in sorted(result.graph.steps.items()):
        if not step.occasion or name not in result.report.results:
            continue
        (artifact,) = result.report.results[name].outputs.values()
        digest = dict(artifact.files)[REPORT_FILE].sha256
        report = json.loads((result.store / "cas/sha256" / digest[:2] / digest).read_bytes())
        if "skipped" not in report:
            address, provider = result.graph.addresses[name], report["provider"]
            of_recipe = found.setdefault(address.recipe, {})
            of_recipe[f"{provider} ({address.task})" if provider in of_recipe else provider] = (
                report
            )
    return found
