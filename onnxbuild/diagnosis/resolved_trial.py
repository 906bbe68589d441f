"""A variant that `mode: auto` searches for, as the trial that it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onnxbuild.building.api import Request, build, graph_of, load
from onnxbuild.building.choices import choices_of, chooser_of
from onnxbuild.building.wiring import RunOptions
from onnxbuild.catalog import MODES
from onnxbuild.core.errors import UsageError, did_you_mean
from onnxbuild.core.ports import EventSink
from onnxbuild.diagnosis.chain import find_variant
from onnxbuild.diagnosis.remedies import as_setting
from onnxbuild.diagnosis.search_goal import SearchGoal
from onnxbuild.resolver.expand import trials_of
from onnxbuild.typed.typed_names import FoundName


@dataclass(frozen=True, slots=True)
class Pinned:
    """A request without a search for the variant.

    Attributes:
        request: With the variant written out as one of its trials, where it was searched for.
        trial: The trial's name; empty where nothing is searched.
        goal: What the search asks of it; None where nothing is searched.
    """

    request: Request
    trial: str = ""
    goal: SearchGoal | None = None


def pin_trial(
    request: Request,
    name: FoundName,
    trial: str,
    options: RunOptions,
    events: Sequence[EventSink] = (),
) -> Pinned:
    """The request with a searched variant written out as one of its trials.

    Its steps are the trial's own, so nothing is built twice.

    Args:
        request: The variant's recipe.
        name: `RECIPE:VARIANT`.
        trial: The trial's name; empty for the one that the search chose, or came nearest with.
        options: How to use the machine, where the search has to run.
        events: Receives the events of the build.

    Raises:
        UsageError: There is no such variant or trial, or the variant is not searched for.
        BuildError: The search breaks.
    """
    loaded = load(request)
    graph = graph_of(request, loaded)
    recipe_name, variant_name = find_variant(graph, name)
    recipe = next(each for each in loaded.recipes if each.name == recipe_name)
    variant = next(each for each in recipe.variants if each.name == variant_name)
    if not variant.searches:
        if trial:
            raise UsageError(
                f"'{variant_name}' has no trials: its mode is {variant.mode}, which searches for nothing",
                fix="leave `--trial` out",
            )
        return Pinned(request)
    auto: Any = variant.options
    trials = trials_of(recipe, variant)
    wanted = f"{recipe_name}:{variant_name}"
    if not trial:
        chooser = chooser_of(graph, recipe_name, variant_name)
        result = build(dataclasses.replace(request, only=(chooser,)), options, events, lay=False)
        choices = choices_of(result)
        if wanted not in choices:
            raise result.report.failures[0].error
        trial = choices[wanted]
    if trial not in trials:
        raise UsageError(
            f"'{variant_name}' has no trial '{trial}'; it tries {', '.join(trials)}",
            fix=did_you_mean(trial, list(trials)) or f"write `--trial {next(iter(trials))}`",
        )
    text = as_setting(recipe, trials[trial])
    settings = {**(request.settings or {}), f"quantization.{variant_name}": text}
    modes = tuple(MODES[variant.mode].tries(recipe))
    goal = SearchGoal(auto.goal, auto.margin, wanted, modes)
    return Pinned(dataclasses.replace(request, settings=settings), trial, goal)
