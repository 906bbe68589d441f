"""ONNX Runtime's own profile of a variant, and its sums by operator."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.core.target import Target
from onnxbuild.onnxkit.benchmark.node_times import node_times
from onnxbuild.onnxkit.benchmark.options import measured_points, takes
from onnxbuild.onnxkit.data.feeds import make_feeds
from onnxbuild.onnxkit.providers.open_on_target import library_of, usable
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session
from onnxbuild.onnxkit.sessions.settings import SessionSettings, read_settings, shown

_WARMUP, _RUNS = 3, 10


@dataclass(frozen=True, slots=True)
class ProfileParams:
    """Parameters of a profile.

    Attributes:
        variant: For messages.
        inputs: What is fed.
        axes: Sizes that points leave out.
        points: As `benchmark.points`.
        target: Where the model runs; it is there.
        session: How the variant's session runs it, where no input `session` says so.
    """

    variant: str
    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]
    points: tuple[dict[str, int | tuple[int, ...]], ...]
    target: Target
    session: SessionSettings = field(default_factory=SessionSettings)


def run(context: StepContext) -> Outcome:
    """Write report.json (operators and nodes by time, at each point) and each point's profile.

    A profile is for chrome://tracing or https://ui.perfetto.dev; writing it takes time, too, so that
    runs are slower than in a benchmark.
    """
    params: ProfileParams = context.params
    found = "session" in context.input_names
    settings = read_settings(context.input("session")) if found else params.session
    fixed = {params.variant: settings.free_dimensions}
    folder = context.output("report")
    points = {}
    for point in measured_points(params.axes, params.points, fixed, context.where):
        if not takes(settings.free_dimensions, point):
            continue
        session = open_session(
            context.input("model"),
            target=usable(context, params.target),
            library=library_of(context, params.target),
            settings=settings,
            profile=context.scratch / point.name,
            where=context.where,
        )
        feeds = make_feeds(params.inputs, point.sizes, seed=0)
        for _ in range(_WARMUP + _RUNS):
            run_session(session, feeds, where=context.where)
        written = Path(session.end_profiling())
        points[point.name] = node_times(json.loads(written.read_text("utf-8")), _RUNS)
        (folder / f"{point.name}.json").write_bytes(written.read_bytes())
    write_report(
        folder, {"provider": params.target.name, "session": shown(settings), "points": points}
    )
    first = next(iter(points.values()))
    slowest = [each["operator"] for each in first["operators"][:1]]
    return Outcome(metrics={"slowest_operator": slowest[0] if slowest else ""})


KIND = StepKind(
    name="profile",
    version=2,
    params=ProfileParams,
    inputs=("model", "session?", "target?"),
    outputs={"report": "report"},
    toolchain=("onnxruntime", "numpy"),
    run=run,
    host_bound=True,
    exclusive=True,
    measures=True,
    entrypoints=lambda params: params.target.entrypoints,
)
