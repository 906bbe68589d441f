"""Progress of a search: how many of its trials have ended, and the best so far."""

from collections.abc import Mapping

from onnxbuild.catalog import all_features
from onnxbuild.core.event import (
    Event,
    StepBlocked,
    StepCached,
    StepFailed,
    StepFinished,
    StepLeftOut,
    StepProgress,
    StepStarted,
)
from onnxbuild.core.graph import Graph, Step
from onnxbuild.core.ports import EventSink
from onnxbuild.expansion.feature import Choice, TrialFigure


class SearchMeters:
    """A sink that counts the trials of each search, and reports them as the progress of the step that will choose."""

    def __init__(self, graph: Graph, displays: EventSink) -> None:
        self._displays = displays
        choices = {each.kind: each for f in all_features() for each in f.choices if each.figures}
        searches: dict[frozenset[str], _Search] = {}
        for step in graph.steps.values():
            choice = choices.get(step.kind)
            trials = {} if choice is None else _trials(step, choice)
            if (
                choice is not None and len(trials) > 1
            ):  # two variants may search the same trials: one bar is enough
                steps = frozenset().union(*trials.values())
                searches.setdefault(steps, _Search(step.name, trials, choice.figures))
        self._searches = tuple(searches.values())

    def emit(self, event: Event) -> None:
        """Take one event."""
        for search in self._searches:
            progress = search.take(event)
            if progress is not None:
                self._displays.emit(progress)


class _Search:
    """One search.

    Args:
        name: Of the step that chooses.
        trials: Trial -> the steps that decide it.
        figures: Any of them says how good a trial is.
    """

    def __init__(
        self, name: str, trials: Mapping[str, frozenset[str]], figures: tuple[TrialFigure, ...]
    ) -> None:
        self._name = name
        self._trials = trials
        self._figures = figures
        self._steps = frozenset().union(*trials.values())
        self._ended: set[str] = set()
        self._measured: dict[tuple[str, str], float] = {}
        self._runs = False

    def take(self, event: Event) -> StepProgress | None:
        """Take one event; returns how far the search is, if the event is of a trial and any trial runs."""
        if isinstance(event, StepStarted) and event.step in self._steps:
            self._runs = True
        elif isinstance(event, StepFinished | StepCached) and event.step in self._steps:
            self._ended.add(event.step)
            self._measure(event.step, event.metrics)
        elif isinstance(event, StepFailed | StepBlocked) and event.step in self._steps:
            self._ended.add(event.step)
        elif isinstance(event, StepLeftOut) and not self._steps.isdisjoint(event.followers):
            self._ended |= {event.step, *event.followers}
        else:
            return None
        ended = sum(steps <= self._ended for steps in self._trials.values())
        return (
            StepProgress(self._name, ended, len(self._trials), "trials", self._best())
            if self._runs
            else None
        )

    def _measure(self, step: str, metrics: Mapping[str, object]) -> None:
        for figure in self._figures:
            value = metrics.get(figure.metric)
            if isinstance(value, float):
                self._measured[step, figure.metric] = value

    def _best(self) -> str:
        """The trial that is the best of those that have ended."""
        for figure in self._figures:
            found = {
                trial: self._measured[step, figure.metric]
                for trial, steps in self._trials.items()
                for step in steps
                if steps <= self._ended and (step, figure.metric) in self._measured
            }
            if found:
                pick = min if figure.is_loss else max
                trial = pick(found, key=lambda name: found[name])
                return f"best so far: {figure.words} {found[trial]:.5f} by {trial}"
        return ""


def _trials(step: Step, choice: Choice) -> dict[str, frozenset[str]]:
    """Trial -> the steps that give what the one that chooses takes of it."""
    return {
        trial: frozenset(step.inputs[name].step for name in names if name in step.inputs)
        for trial, names in choice.trials(step.params).items()
    }
