"""Search a variant's session settings for those that run fastest on this machine."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnxbuild.core.axis import Point
from onnxbuild.core.errors import StepError
from onnxbuild.core.params import to_json
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.core.target import Target
from onnxbuild.host.measured import usable_cores
from onnxbuild.onnxkit.benchmark.options import measured_points, takes
from onnxbuild.onnxkit.benchmark.runners import onnx_runtime
from onnxbuild.onnxkit.data.feeds import make_feeds
from onnxbuild.onnxkit.host.load import conditions, read_times
from onnxbuild.onnxkit.model.model_files import file_bytes
from onnxbuild.onnxkit.providers.open_on_target import (
    absence,
    left_out,
    library_of,
    skipped,
    usable,
)
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions.settings import TUNED, SessionSettings, TuneOptions, shown
from onnxbuild.onnxkit.timing.ratios import Ratio, is_ranked, ratio_over
from onnxbuild.onnxkit.timing.rounds import SETTLE_S, SPIN_SETTLE_S, Turns, measure_turns

if TYPE_CHECKING:
    from onnxbuild.onnxkit.search.tune_session import Compared, Found, QuestionAnswers

_WARMUP = 3
_LEAST_ROUNDS = 8
"""Fewer say nothing for sure."""

_LARGE_BYTES = 512 << 20
"""Size from which no more than two sessions of a model are open at a time: each holds the weights, and those
that it has rearranged once more."""

METHOD = (
    "one question at a time, from the recipe's settings: the answers and the best so far take turns in "
    "one process, in random order, as in a benchmark, each burst after a pause of 50 ms; `ratio` is an "
    "answer's time by the best's, [value, low, high] with 95 % confidence, over all points; the fastest "
    "answer whose interval is below 1 is the best from then on. `proof` is the end against the "
    "recipe's settings, measured anew: it is chosen if that interval is below 1, too"
)


@dataclass(frozen=True, slots=True)
class TuneParams:
    """Parameters of a search.

    Attributes:
        variant: For messages.
        inputs: What is fed.
        axes: Sizes that points leave out.
        points: As `benchmark.points`.
        target: Where the model runs.
        settings: The recipe's: what must be beaten.
        options: The search's.
    """

    variant: str
    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]
    points: tuple[dict[str, int | tuple[int, ...]], ...]
    target: Target
    settings: SessionSettings
    options: TuneOptions


def run(context: StepContext) -> Outcome:
    """Write report.json: all that was tried, and what is chosen.

    On a target that is not there, or that runs none of the model, nothing is tried: the recipe's
    settings stay.

    Raises:
        StepError: The model does not load or run with the recipe's settings.
    """
    from onnxbuild.onnxkit.search.tune_session import search_settings

    params: TuneParams = context.params
    if reason := absence(context):
        return skipped(context, params.target, reason, _kept(params.settings))
    missed = left_out(context, {params.variant: context.input("model")}, params.target)
    if missed:
        return skipped(context, params.target, missed[params.variant], _kept(params.settings))
    bench = _Bench(context)
    before = read_times()
    found = search_settings(params.settings, params.options, usable_cores(), bench.compare)
    machine = conditions(before, read_times())
    report = {
        "method": METHOD,
        "host": machine.to_json(),
        "provider": params.target.name,
        "points": [point.name for point in bench.points],
        "default": to_json(params.settings),
        **_kept(found.chosen),
        "changed": shown(found.chosen, params.settings),
        "asked": [bench.show(number, each) for number, each in enumerate(found.asked)],
        "proof": None if found.proof is None else _proof(found, params.settings),
    }
    write_report(context.output("report"), report)
    noise = tuple(f"the machine was noisy: {why}" for why in machine.noisy)
    return Outcome(
        metrics={"tuned": shown(found.chosen, params.settings)},
        notes=(_note_of(params, found), *noise),
    )


def _kept(settings: SessionSettings) -> dict[str, object]:
    """Return the part of the report that the step `session` takes."""
    return {"tuned": {name: getattr(settings, name) for name in TUNED}}


class _Bench:
    """Runs settings side by side, and remembers their latencies."""

    def __init__(self, context: StepContext) -> None:
        params: TuneParams = context.params
        fixed = params.settings.free_dimensions
        points = measured_points(
            params.axes, params.points, {params.variant: fixed}, context.where
        )
        self.points: tuple[Point, ...] = tuple(p for p in points if takes(fixed, p))
        self._feeds = {p.name: make_feeds(params.inputs, p.sizes, seed=0) for p in self.points}
        self._context = context
        self._at_once = 1 if file_bytes(context.input("model")) > _LARGE_BYTES else 64
        self._p50_ms: list[dict[str, dict[str, float]]] = []

    def compare(
        self, best: SessionSettings, tried: Sequence[SessionSettings], each_s: float
    ) -> Compared:
        """See session_search.Compare; of a large model, one is measured at a time."""
        from onnxbuild.onnxkit.search.tune_session import Compared

        self._p50_ms.append({})
        ratios: list[Ratio | str] = []
        spent_s = 0.0
        for first in range(0, len(tried), self._at_once):
            some = self._compare(best, tried[first : first + self._at_once], each_s)
            ratios += some.ratios
            spent_s += some.spent_s
        return Compared(tuple(ratios), spent_s)

    def _compare(
        self, best: SessionSettings, tried: Sequence[SessionSettings], each_s: float
    ) -> Compared:
        from onnxbuild.onnxkit.search.tune_session import Compared

        calls = {"best": self._bound(best)}
        refused: dict[str, str] = {}
        for number, settings in enumerate(tried):
            try:
                calls[str(number)] = self._bound(settings)
            except StepError as error:
                refused[str(number)] = error.what
        if len(calls) == 1:
            return Compared(tuple(refused.values()), 0.0)
        spins = best.spins or any(each.spins for each in tried)
        turns = {
            point: measure_turns(
                {name: bound[point] for name, bound in calls.items()},
                warmup=_WARMUP,
                min_samples=_LEAST_ROUNDS,
                min_rounds=_LEAST_ROUNDS,
                max_time_s=each_s / len(self.points),
                settled=is_ranked,
                settle_s=SPIN_SETTLE_S if spins else SETTLE_S,
            )
            for point in self._feeds
        }
        self._note(best, {point: each["best"] for point, each in turns.items()})
        ratios: list[Ratio | str] = []
        for number, settings in enumerate(tried):
            name = str(number)
            if name in refused:
                ratios.append(refused[name])
                continue
            ratios.append(ratio_over([(each[name], each["best"]) for each in turns.values()]))
            self._note(settings, {point: each[name] for point, each in turns.items()})
        measured_ns = sum(
            run
            for each in turns.values()
            for runner in each.values()
            for turn in runner
            for run in turn
        )
        pauses = sum(len(r) for each in turns.values() for r in each.values()) * SPIN_SETTLE_S
        return Compared(tuple(ratios), measured_ns / 1e9 + pauses)

    def _bound(self, settings: SessionSettings) -> dict[str, Any]:
        """Point -> a call that runs the model once."""
        params: TuneParams = self._context.params
        bind = onnx_runtime(
            self._context.input("model"),
            target=usable(self._context, params.target),
            library=library_of(self._context, params.target),
            settings=settings,
            where=self._context.where,
        )()
        return {point: bind(feeds) for point, feeds in self._feeds.items()}

    def _note(self, settings: SessionSettings, turns: Mapping[str, Turns]) -> None:
        self._p50_ms[-1][shown(settings)] = {
            point: round(statistics.median(run for turn in each for run in turn) / 1e6, 5)
            for point, each in turns.items()
        }

    def show(self, number: int, asked: QuestionAnswers) -> dict[str, object]:
        """A question's part of the report.

        Args:
            number: Its place among the questions: that of its measurement.
        """
        default: SessionSettings = self._context.params.settings
        p50_ms = self._p50_ms[number]
        return {
            "question": asked.question,
            "current": shown(asked.current, default),
            "current_p50_ms": p50_ms.get(shown(asked.current)),
            "tried": [
                {
                    "settings": shown(settings, default),
                    **(
                        {"refused": ratio}
                        if isinstance(ratio, str)
                        else {"ratio": _bounds(ratio), "p50_ms": p50_ms[shown(settings)]}
                    ),
                }
                for settings, ratio in asked.tried
            ],
            "best": shown(asked.best, default),
        }


def _proof(found: Found, default: SessionSettings) -> dict[str, object]:
    assert found.proof is not None
    return {
        "settings": shown(found.best, default),
        "ratio": _bounds(found.proof),
        "holds": found.chosen == found.best,
    }


def _bounds(ratio: Ratio) -> list[float | None]:
    known = ratio.low > 0
    bounds = (ratio.low, ratio.high) if known else (None, None)
    return [None if each is None else round(each, 4) for each in (ratio.value, *bounds)]


def _note_of(params: TuneParams, found: Found) -> str:
    on = "" if params.target.is_cpu else f" on {params.target.name}"
    who = f"variant '{params.variant}'{on}"
    if found.proof is None:
        return f"{who}: no session settings were measured to be faster than the recipe's"
    best, proof = shown(found.best, params.settings), found.proof
    bounds = f"{proof.value:.3f} x the time ({proof.low:.3f} to {proof.high:.3f})"
    if found.chosen != found.best:
        return (
            f"{who}: the recipe's session settings stay: {best} seemed to be faster, and measured "
            f"once more took {bounds}"
        )
    return f"{who}: session {best} takes {bounds} of the recipe's settings"


KIND = StepKind(
    name="tune",
    version=4,
    params=TuneParams,
    inputs=("model", "target?"),
    outputs={"report": "report"},
    toolchain=("onnxruntime", "numpy"),
    run=run,
    host_bound=True,
    exclusive=True,
    measures=True,
    entrypoints=lambda params: params.target.entrypoints,
)
