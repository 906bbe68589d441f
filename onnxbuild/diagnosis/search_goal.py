"""The goal of a search, held against a build of one of its trials as the search itself would."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.building.api import BuildResult, Request
from onnxbuild.catalog import all_features
from onnxbuild.core.step import REPORT_FILE
from onnxbuild.diagnosis.artifact_folders import artifacts_shown
from onnxbuild.onnxkit.accuracy.vector_files import ERRORS_FILE, read_errors
from onnxbuild.onnxkit.search.goals import Goal, asked, missed, reached, written
from onnxbuild.onnxkit.search.holdout import CHOOSING, JUDGING, figures_of


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
    """

    goal: Goal
    margin: float
    variant: str
    modes: tuple[str, ...]

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps with the reports that judge a search."""
        answers = {
            bound: step
            for each in all_features()
            for bound, step in each.diagnosis.answers.items()
        }
        steps = {answers[bound] for bound in asked(self.goal)}
        return tuple(f"{self.variant}/{step}" for step in sorted(steps))

    @property
    def written(self) -> str:
        """Goal and margin in words: `cosine_min 0.995 with a margin of 0.1`."""
        spare = f" with a margin of {self.margin:g}" if self.margin else ""
        return f"{written(self.goal)}{spare}"

    def standing(self, request: Request, result: BuildResult) -> Standing:
        """Return a build's model against the goal; one that has no report misses it.

        Args:
            request: What was built, `steps` included.
            result: Its result.
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
    return figures_of(errors, scored, half)
