"""Session settings of each variant, as the recipe, a search or a lock gives them; and the check that its target is there."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onnxbuild.core.errors import UsageError
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Recipe, Variant
from onnxbuild.core.target import Require, Target
from onnxbuild.expansion.addresses import further, of_variant, shared
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.benchmark.options import BenchmarkOptions
from onnxbuild.onnxkit.providers.open_on_target import TARGET_INPUT
from onnxbuild.onnxkit.sessions.settings import SessionOptions, SessionSettings, TuneOptions
from onnxbuild.steps import provider, session, tune


def target_inputs(scope: Scope, target: Target | None) -> dict[str, OutputRef]:
    """The inputs of a step that runs on a target, besides its own.

    The CPU of this program's own ONNX Runtime is always there: nothing is looked for.
    """
    if target is None or (target.is_cpu and target.environment is None):
        return {}
    step = scope.step(
        shared(scope.recipe, "provider", target.name),
        provider.KIND,
        provider.ProviderParams(target, _required(scope.recipe, target)),
        section="providers",
    )
    return {TARGET_INPUT: OutputRef(step, "report")}


def _required(recipe: Recipe, target: Target) -> Require:
    """Return how much of a target must load: what is searched for or profiled needs the first target.

    `session: {tune: true}` searches each target that is there.
    """
    asked = recipe.gates[target.name].require
    return (
        "one" if asked == "none" and target == recipe.targets[0] and _measures(recipe) else asked
    )


def _measures(recipe: Recipe) -> bool:
    sessions = [recipe.section("session", SessionOptions)]
    sessions += [
        each.section("session", SessionOptions)
        for each in recipe.variants
        if "session" in each.sections
    ]
    return any(each.searches for each in recipe.variants) or any(
        each.profiling for each in sessions
    )


SECTION = "session"


@dataclass(frozen=True, slots=True)
class VariantSession:
    """The session settings that a variant's steps get.

    Attributes:
        settings: The recipe's.
        steps: Target -> name of the step that settles them there after a search; empty where
            nothing is searched.
        reports: Report -> file name, to lay next to the variant.
    """

    settings: SessionSettings
    steps: Mapping[str, str] = field(default_factory=dict)
    reports: tuple[tuple[OutputRef, str], ...] = ()

    def inputs(self, target: Target, output: str, name: str = "session") -> dict[str, OutputRef]:
        """The input that says it: `settings`, or `judged`, what can change numbers."""
        step = self.steps.get(target.name)
        return {name: OutputRef(step, output)} if step else {}


def add_session(scope: Scope, variant: Variant, model: OutputRef) -> VariantSession:
    """The session of a variant's model: as its recipe says, or searched for on each target.

    Raises:
        UsageError: A lock's choice is no session's settings.
    """
    recipe = scope.recipe
    options = options_of(recipe, variant)
    settings = options.settings()
    tuning = options.tuning()
    if tuning is None:
        return VariantSession(settings)
    return _tuned_everywhere(scope, variant, model, settings, tuning)


def _tuned_everywhere(
    scope: Scope,
    variant: Variant,
    model: OutputRef,
    settings: SessionSettings,
    tuning: TuneOptions,
) -> VariantSession:
    """A search on each target: what is fastest on one says nothing of another."""
    recipe = scope.recipe
    steps: dict[str, str] = {}
    reports: list[tuple[OutputRef, str]] = []
    for number, target in enumerate(recipe.targets):
        elsewhere = further(recipe, number)
        address = of_variant(recipe, variant, "session", elsewhere)
        choice = scope.choices.get(str(address), "")
        inputs: dict[str, OutputRef] = {}
        if choice:
            _check_choice(str(address), choice, settings)
        else:
            params = tune.TuneParams(
                variant=variant.name,
                settings=settings,
                options=tuning,
                **measured_at(recipe, target),
            )
            searched = scope.step(
                of_variant(recipe, variant, "tune", elsewhere),
                tune.KIND,
                params,
                {"model": model, **target_inputs(scope, target)},
                at=variant.location,
            )
            inputs["tune"] = OutputRef(searched, "report")
            reports.append(
                (inputs["tune"], f"tune-{elsewhere}.json" if elsewhere else "tune.json")
            )
        steps[target.name] = scope.step(
            address,
            session.KIND,
            session.SessionParams(settings, choice),
            inputs,
            at=variant.location,
        )
    return VariantSession(settings, steps, tuple(reports))


def options_of(recipe: Recipe, variant: Variant) -> SessionOptions:
    """A variant's `session`: its own over the recipe's."""
    where = variant if SECTION in variant.sections else recipe
    return where.section(SECTION, SessionOptions)


def settings_of(recipe: Recipe, variant: Variant) -> SessionSettings:
    """A variant's session settings, without what searches find."""
    return options_of(recipe, variant).settings()


def measured_at(recipe: Recipe, target: Target) -> dict[str, Any]:
    """The parameters of a step that measures a variant: inputs, axes, points and target."""
    return {
        "inputs": recipe.inputs,
        "axes": recipe.axes,
        "points": recipe.section("benchmark", BenchmarkOptions).points,
        "target": target,
    }


def _check_choice(name: str, choice: str, settings: SessionSettings) -> None:
    try:
        settings.with_tuned(choice)
    except (ValueError, json.JSONDecodeError) as error:
        raise UsageError(
            f"the lock's choice for {name} is no session's settings: {error}",
            fix="onnxbuild lock RECIPE --update choices",
        ) from error
