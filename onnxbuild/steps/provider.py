"""Check that a target's providers load on this machine: once, before anything runs there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.core.target import Require, Target
from onnxbuild.onnxkit.providers.open_on_target import library_of
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions.rpc_client import host_of, runtime_facts

if TYPE_CHECKING:
    from onnxbuild.onnxkit.providers.probe import ProviderProbe


@dataclass(frozen=True, slots=True)
class ProviderParams:
    """Parameters of a check: the target, and how much of it must load.

    Attributes:
        target: Its providers are tried one by one.
        require: How much of the chain must load.
    """

    target: Target
    require: Require


def run(context: StepContext) -> Outcome:
    """Write report.json: what loads, and why the rest does not.

    Raises:
        StepError: What is required does not load.
    """
    from onnxbuild.onnxkit.providers.probe import probe_target

    params: ProviderParams = context.params
    target = params.target
    probes = probe_target(target, library_of(context, target), context.scratch)
    loads = [probe.provider for probe in probes if probe.loads]
    lost = [probe for probe in probes if not probe.loads]
    if lost and (params.require == "all" or (params.require == "one" and not loads)):
        raise StepError(
            f"target '{target.name}' is required, and {_reasons(lost)}",
            where=context.where,
            fix=f"{lost[0].fix}; or let it be skipped: `{target.name}: {{require: false}}` next to "
            "a target that is here, such as `cpu`",
        )
    absent = "" if loads else _reasons(lost)
    report: dict[str, object] = {
        "target": target.name,
        "loads": loads,
        "absent": absent,
        "faults": {
            probe.provider: [
                {"cause": fault.cause, "what": fault.what, "fix": fault.fix}
                for fault in probe.faults
            ]
            for probe in lost
        },
    }
    if target.environment is not None:
        host = host_of(target.environment.interpreter, context.where)
        report["environment"] = host.call(runtime_facts)
    write_report(context.output("report"), report)
    return Outcome(
        metrics={"target": target.name, "loads": loads, "absent": absent},
        notes=_notes(target, loads, lost),
    )


def _reasons(lost: list[ProviderProbe]) -> str:
    """Say in one line why each does not load: the first reason of each."""
    if len(lost) == 1:
        return f"does not load: {lost[0].faults[0].what}"
    return "none of it loads: " + "; ".join(f"{p.provider}: {p.faults[0].what}" for p in lost)


def _notes(target: Target, loads: list[str], lost: list[ProviderProbe]) -> tuple[str, ...]:
    if not lost:
        return ()
    fix = f" (fix: {lost[0].fix})"
    if not loads:
        return (f"target '{target.name}' is skipped: it {_reasons(lost)}{fix}",)
    without = "; ".join(f"{probe.provider}: {probe.faults[0].what}" for probe in lost)
    return (f"target '{target.name}' runs on {', '.join(loads)}; not there: {without}{fix}",)


KIND = StepKind(
    name="provider",
    version=3,
    params=ProviderParams,
    inputs=(),
    outputs={"report": "report"},
    toolchain=("onnxruntime", "onnx", "numpy"),
    run=run,
    host_bound=True,
    driver_bound=True,
    entrypoints=lambda params: params.target.entrypoints,
)
