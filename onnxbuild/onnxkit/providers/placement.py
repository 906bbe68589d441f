"""Read which of a session's nodes ONNX Runtime gave to which execution provider."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnxbuild.core.sizes import share_text
from onnxbuild.core.step import Finding
from onnxbuild.core.target import CPU, Target, TargetGates
from onnxbuild.onnxkit.sessions.rpc_client import HostedSession
from onnxbuild.providers import full_name

if TYPE_CHECKING:
    import onnxruntime

_CPU = full_name(CPU)
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Placement:
    """Placement of nodes on providers, after ONNX Runtime's own fusions.

    Attributes:
        nodes: Provider's full name -> how many nodes it runs.
        operators_on_cpu: Operator -> how many of it the CPU runs.
    """

    nodes: Mapping[str, int]
    operators_on_cpu: Mapping[str, int]

    @property
    def total(self) -> int:
        """Number of all nodes."""
        return sum(self.nodes.values())

    @property
    def on_cpu(self) -> int:
        """Number of nodes that ONNX Runtime's CPU provider runs."""
        return self.nodes.get(_CPU, 0)

    def coverage(self, target: Target) -> float:
        """The share of nodes that run where the target means them to: 0 to 1, 1 if there are none.

        The CPU counts for a target that is the CPU, not for one that falls back to it.
        """
        own = self.total if target.is_cpu else self.total - self.on_cpu
        return own / self.total if self.total else 1.0

    def to_json(self, target: Target) -> dict[str, Any]:
        """Return the placement for a report."""
        shown: dict[str, Any] = {
            "nodes": dict(self.nodes),
            "coverage": round(self.coverage(target), 6),
        }
        if not target.is_cpu and self.on_cpu:
            shown["operators_on_cpu"] = dict(self.operators_on_cpu)
        return shown


def placement_findings(
    placement: Placement, target: Target, gates: TargetGates, subject: str
) -> tuple[Finding, ...]:
    """Breaches of what a target must show.

    Args:
        placement: Where the model's nodes went.
        gates: How many of them.
        subject: Whose model it is.
    """
    most, least = gates.max_cpu_nodes, gates.min_coverage
    coverage = placement.coverage(target)
    where = f"{subject}, target '{target.name}'"
    operators = sorted(placement.operators_on_cpu.items(), key=lambda item: (-item[1], item[0]))
    left = ", ".join(f"{count} {name}" for name, count in operators[:_SHOWN])
    findings = []
    if most is not None and placement.on_cpu > most:
        findings.append(
            Finding(
                f"{placement.on_cpu} of {placement.total} nodes run on the CPU ({left}); "
                f"expected at most {most}",
                where,
                f"raise `max_cpu_nodes`, or export without {operators[0][0]}",
            )
        )
    if least is not None and coverage < least:
        findings.append(
            Finding(
                f"{share_text(coverage, 1)} of {placement.total} nodes run on the target, the rest on the CPU "
                f"({left}); expected at least {share_text(least, 1)}",
                where,
                f"lower `min_coverage`, or export without {operators[0][0]}",
            )
        )
    return tuple(findings)


def placement_of(session: onnxruntime.InferenceSession) -> Placement | None:
    """Return what ONNX Runtime recorded; None if this version records nothing (before 1.24)."""
    if isinstance(session, HostedSession):
        elsewhere: Placement | None = session.call(placement_of)
        return elsewhere
    if not hasattr(session, "get_provider_graph_assignment_info"):
        return None
    nodes: Counter[str] = Counter()
    on_cpu: Counter[str] = Counter()
    for part in session.get_provider_graph_assignment_info():
        for node in part.get_nodes():
            nodes[part.ep_name] += 1
            if part.ep_name == _CPU:
                on_cpu[node.op_type] += 1
    return Placement(dict(sorted(nodes.items())), dict(sorted(on_cpu.items())))
