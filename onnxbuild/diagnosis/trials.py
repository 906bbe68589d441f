"""Remedies tried for real: the variant is built with them, as cached as any build, and judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from onnxbuild.building.api import BuildResult, Request, build
from onnxbuild.building.wiring import RunOptions
from onnxbuild.diagnosis.artifact_folders import artifact_of, size_bytes
from onnxbuild.diagnosis.bisect import least_that_passes
from onnxbuild.diagnosis.chain import Chain
from onnxbuild.diagnosis.remedies import Remedy
from onnxbuild.diagnosis.search_goal import SearchGoal


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
        chain: The variant's way.
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
