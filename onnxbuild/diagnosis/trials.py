"""Remedies tried for real: built, judged, and held against the goal of a search."""

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from onnxbuild.building.api import BuildResult, Request, build, graph_of, load
from onnxbuild.building.choices import choices_of, chooser_of
from onnxbuild.building.wiring import RunOptions
from onnxbuild.catalog import MODES, all_features
from onnxbuild.core.errors import UsageError, did_you_mean
from onnxbuild.core.ports import EventSink
from onnxbuild.core.step import REPORT_FILE
from onnxbuild.diagnosis.alone import assigned_in, whole_of, with_each_alone
from onnxbuild.diagnosis.chain import Chain, find_variant
from onnxbuild.diagnosis.measurements import artifact_of, artifacts_shown, size_bytes
from onnxbuild.diagnosis.remedies import Remedy, as_setting, key_of
from onnxbuild.onnxkit.accuracy.sample_outputs import ERRORS_FILE, read_errors
from onnxbuild.onnxkit.search.goals import (
    CHOOSING,
    JUDGING,
    Goal,
    asked,
    figures_of,
    missed,
    reached,
    written,
)
from onnxbuild.resolver.expand import trials_of
from onnxbuild.typed.typed_names import FoundName


def least_that_passes(most: int, passes: Callable[[int], bool]) -> int | None:
    """The least k of 1..most for which `passes(k)`, if more never hurts; None if none does.

    1, 2, 4, ... are tried until one passes, then the numbers between it and the last that failed.
    """
    failed, k = 0, 1
    while k < most and not passes(k):
        failed, k = k, min(2 * k, most)
    if k == most and not passes(k):
        return None
    while k - failed > 1:
        middle = (failed + k) // 2
        if passes(middle):
            k = middle
        else:
            failed = middle
    return k


@dataclass(frozen=True, slots=True)
class Standing:
    """Standing of a model against a search's goal.

    Attributes:
        reached: What it shows of what is asked, on the half of the data that chooses.
        why: What it misses, and where; empty where the goal is met.
    """

    reached: str
    why: str


@dataclass(frozen=True, slots=True)
class SearchGoal:
    """Goal of a search for a variant.

    Attributes:
        goal: What must hold on either half of the data.
        margin: Share of what may be lost that must be left over on the half that chooses.
        variant: `RECIPE:VARIANT`.
        modes: That the search can try.
        in_whole: Steps that a component has not -> the gate of its pipeline, with it alone, whose report is there instead.
    """

    goal: Goal
    margin: float
    variant: str
    modes: tuple[str, ...]
    in_whole: Mapping[str, str] = field(default_factory=dict)

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps with the reports that judge a search."""
        answers = {
            bound: step
            for each in all_features()
            for bound, step in each.diagnosis.answers.items()
        }
        steps = {answers[bound] for bound in asked(self.goal)}
        named = (f"{self.variant}/{step}" for step in sorted(steps))
        return tuple(self.in_whole.get(each, each) for each in named)

    @property
    def written(self) -> str:
        """Goal and margin in words: `cosine_min 0.995 with a margin of 0.1`."""
        spare = f" with a margin of {self.margin:g}" if self.margin else ""
        return f"{written(self.goal)}{spare}"

    def standing(self, request: Request, result: BuildResult) -> Standing:
        """Return a build's model against the goal; one that has no report misses it.

        Args:
            request: What was built, `steps` included.
        """
        with artifacts_shown(request, result, self.steps) as folders:
            if len(folders) < len(self.steps):
                return Standing("nothing", self._unreported(result))
            shown = [_figures(folders.values(), half) for half in (CHOOSING, JUDGING)]
            lost = _lost_parts(folders.values())
        choosing, judging = (
            (missed(self.goal, figures, margin), reached(self.goal, figures))
            for figures, margin in zip(shown, (self.margin, 0.0), strict=True)
        )
        why = ""
        if choosing[0]:
            why = f"{choosing[1]}; the goal is {self.written}"
        elif judging[0]:
            half = "on the half of the data that judges"
            why = f"{judging[1]} {half}; the goal is {written(self.goal)}"
        if lost:
            why = "; ".join(filter(None, (why, f"{', '.join(lost)} is lost")))
        return Standing(choosing[1], why)

    def _unreported(self, result: BuildResult) -> str:
        for name in self.steps:
            made = result.report.results.get(result.graph.resolve(name))
            if made is not None and made.not_applicable is not None:
                return made.not_applicable.what
        failures = result.report.failures
        return failures[0].error.what if failures else "it was not judged"


def _lost_parts(folders: Iterable[Path]) -> list[str]:
    """The parts of outputs that the `fidelity` report says are lost."""
    reports = [
        json.loads((folder / REPORT_FILE).read_text("utf-8"))
        for folder in folders
        if (folder / ERRORS_FILE).exists()
    ]
    return [part["part"] for report in reports for part in report.get("lost_parts", [])]


def _figures(folders: Iterable[Path], half: int) -> dict[str, Any]:
    errors = None
    scored: dict[str, Any] = {}
    for folder in folders:
        if (folder / ERRORS_FILE).exists():
            errors = read_errors(folder)
        else:
            scored |= json.loads((folder / REPORT_FILE).read_text("utf-8"))
    return figures_of(errors, scored, half, scored.get("by_prompt", ()))


@dataclass(frozen=True, slots=True)
class RemedyTrial:
    """A remedy and its result.

    Attributes:
        remedy: What was changed.
        passed: Whether every gate that was asked for passes.
        why: The first thing that fails; empty if none does.
        cosine_min: Of the variant's outputs against the reference's; None where it was not built.
        reached: What it shows of a search's goal; empty where there is none.
        size_bytes: Of the model; None where it was not built.
        score: Of the user's metric; None where it was not scored.
    """

    remedy: Remedy
    passed: bool
    why: str
    cosine_min: float | None
    reached: str = ""
    size_bytes: int | None = None
    score: float | None = None


class Trials:
    """Builds a variant with remedies.

    Args:
        request: The variant's recipe; what is wanted of it are the gates.
        goal: A search's goal, in addition to the gates; None for none.
        options: How to use the machine.
        on_trial: Called with each trial, if given.
    """

    def __init__(
        self,
        request: Request,
        chain: Chain,
        goal: SearchGoal | None,
        options: RunOptions,
        on_trial: Callable[[RemedyTrial], None] | None,
    ) -> None:
        self._request = request
        self._chain = chain
        self._goal = goal
        self._options = options
        self._on_trial = on_trial
        self.tried: list[RemedyTrial] = []

    def first(self, remedies: Sequence[Remedy]) -> RemedyTrial | None:
        """The first remedy that helps, tried one by one; None if none does."""
        return next((each for each in map(self._try, remedies) if each.passed), None)

    def least(self, most: int, remedy: Callable[[int], Remedy]) -> RemedyTrial | None:
        """The least of a growing row of remedies that helps, found by bisecting.

        Args:
            most: How long the row is.
            remedy: Gives the k-th, k of 1..most.
        """
        done: dict[int, RemedyTrial] = {}

        def passes(k: int) -> bool:
            done[k] = self._try(remedy(k))
            return done[k].passed

        least = least_that_passes(most, passes)
        return None if least is None else done[least]

    def _try(self, remedy: Remedy) -> RemedyTrial:
        settings = {**(self._request.settings or {}), **remedy.settings}
        request = replace(self._request, settings=settings)
        trial = self._by_goal(remedy, request)
        if trial is None or trial.passed:
            trial = self._judge(remedy, request, build(request, self._options, lay=False))
        self.tried.append(trial)
        if self._on_trial is not None:
            self._on_trial(trial)
        return trial

    def _by_goal(self, remedy: Remedy, request: Request) -> RemedyTrial | None:
        """Judge a remedy by the goal alone, which may spare the gates; None if there is no goal."""
        if self._goal is None:
            return None
        request = replace(request, only=self._goal.steps)
        return self._judge(remedy, request, build(request, self._options, lay=False))

    def _judge(self, remedy: Remedy, request: Request, result: BuildResult) -> RemedyTrial:
        failures = result.report.failures
        judged = result.report.results.get(self._chain.judge)
        cosine = None if judged is None else judged.metrics.get("cosine_min")
        standing = None if self._goal is None else self._goal.standing(request, result)
        model = artifact_of(result, self._chain.models[-1].name)
        missed = "" if standing is None else standing.why
        return RemedyTrial(
            remedy=remedy,
            passed=result.exit_code == 0 and not missed,
            why=failures[0].error.what if failures else missed,
            cosine_min=cosine if isinstance(cosine, float) else None,
            reached="" if standing is None else standing.reached,
            size_bytes=None if model is None else size_bytes(model),
            score=next(self._scores(result), None),
        )

    def _scores(self, result: BuildResult) -> Iterator[float]:
        """The scores that the variant's gates gave it, the first target's first."""
        for gate in self._chain.gates:
            made = result.report.results.get(gate.name)
            score = None if made is None else made.metrics.get("score")
            if isinstance(score, int | float):
                yield float(score)


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
    own = {key_of(recipe, f"quantization.{variant_name}"): text}
    settings = {**(request.settings or {}), **own}
    modes = tuple(MODES[variant.mode].tries(recipe))
    goal = SearchGoal(auto.goal, auto.margin, wanted, modes)
    pinned = dataclasses.replace(request, settings=settings)
    whole = whole_of(recipe, loaded.recipes)
    lacking = [each for each in goal.steps if each not in graph_of(pinned).addresses]
    if whole is None or not lacking:
        return Pinned(pinned, trial, goal)
    assigned = assigned_in(graph, loaded.recipes, whole)
    pinned, gates = with_each_alone(pinned, whole, assigned, {recipe.component: variant_name})
    in_whole = dict.fromkeys(lacking, gates[recipe.component][0])
    return Pinned(pinned, trial, replace(goal, in_whole=in_whole))
