"""Measure the load time of ahead-of-time models, and of the portable model in turn."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.core.target import CPU, CPU_TARGET, Link, Target
from onnxbuild.onnxkit.ahead_of_time.artifact_file import loaded_bytes, read_description
from onnxbuild.onnxkit.benchmark.candidate import Contender
from onnxbuild.onnxkit.benchmark.interleave import load_report, measure_loads
from onnxbuild.onnxkit.benchmark.runners import onnx_runtime
from onnxbuild.onnxkit.data.reference_files import read_reference
from onnxbuild.onnxkit.host.host import describe_host
from onnxbuild.onnxkit.host.load import conditions, read_times
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.providers import short_name

_PORTABLE = "portable"
_GROUP = "artifact/"


@dataclass(frozen=True, slots=True)
class LoadTimesParams:
    """Parameters of a measurement.

    Attributes:
        session: The variant's.
    """

    session: SessionSettings = field(default_factory=SessionSettings)


def run(context: StepContext) -> Outcome:
    """Write report.json: name -> times and memory, and on what machine.

    Raises:
        StepError: A model does not load or run.
    """
    contenders = [
        _portable(context),
        *(_artifact(context, n) for n in context.input_names if n.startswith(_GROUP)),
    ]
    feeds = next(iter(read_reference(context.input("reference")))).feeds
    before = read_times()
    found = measure_loads(contenders, feeds, context.where)
    load = conditions(before, read_times())
    report = load_report(found, _PORTABLE)
    for each in contenders:
        report[each.name]["size_bytes"] = each.size_bytes
    noisy = list(load.noisy)
    host = {**describe_host(), "noisy": noisy}
    write_report(context.output("report"), {"loads": report, "host": host})
    return Outcome({"loads": report, "noisy": noisy})


def _portable(context: StepContext) -> Contender:
    settings: SessionSettings = context.params.session
    return _contender(_PORTABLE, context.input("model"), CPU_TARGET, settings, context.where)


def _artifact(context: StepContext, name: str) -> Contender:
    folder = context.input(name)
    described = read_description(folder)
    settings = replace(
        context.params.session,
        graph_optimization=described.graph_optimization,
        free_dimensions={}
        if described.kind == "optimized"
        else context.params.session.free_dimensions,
        config={**context.params.session.config, **described.config},
    )
    options = {
        **described.provider_options,
        **dict.fromkeys(described.folder_options, str(folder)),
    }
    provider = short_name(described.provider)
    target = CPU_TARGET if provider == CPU else Target(provider, (Link(provider, options),))
    return _contender(name.removeprefix(_GROUP), folder, target, settings, context.where)


def _contender(
    name: str, folder: Path, target: Target, settings: SessionSettings, where: str
) -> Contender:
    load = onnx_runtime(folder, target=target, library=None, settings=settings, where=where)
    return Contender(name, load, loaded_bytes(folder))


KIND = StepKind(
    name="load-times",
    version=3,
    params=LoadTimesParams,
    inputs=("model", "reference", "artifact/*"),
    outputs={"report": "report"},
    toolchain=("onnxruntime", "numpy", "psutil"),
    run=run,
    host_bound=True,
    exclusive=True,
    measures=True,
)
