"""A target: where a model is to run, as one execution provider or a chain of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from onnxbuild.core.entrypoint import Entrypoint
from onnxbuild.core.environment import Environment

CPU = "cpu"
"""The provider that is in every ONNX Runtime, and that runs what all others leave."""

Require = Literal["none", "one", "all"]


@dataclass(frozen=True, slots=True)
class Link:
    """One provider of a chain.

    Attributes:
        provider: Short name; the full one where there is no short one.
        options: The provider's own, as ONNX Runtime takes them.
    """

    provider: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Target:
    """Target: the providers that a model runs on. All of it decides what comes out, so all of it enters keys.

    Attributes:
        name: In steps, reports and file names.
        chain: In order of preference; each takes the nodes that those before it leave. ONNX
            Runtime's own CPU provider takes what is left at the end, named or not.
        library: A plug-in's shared library, as the one declared file; None for a provider that is
            built into ONNX Runtime.
        environment: Whose ONNX Runtime it is; None for the one in onnxbuild's own environment.
    """

    name: str
    chain: tuple[Link, ...]
    library: Entrypoint | None = None
    environment: Environment | None = None

    @property
    def is_cpu(self) -> bool:
        """Whether it is ONNX Runtime's own CPU provider, which is always there."""
        return [link.provider for link in self.chain] == [CPU]

    @property
    def falls_back(self) -> bool:
        """Whether the chain names the CPU besides another provider, so any node may run on it."""
        return len(self.chain) > 1 and any(link.provider == CPU for link in self.chain)

    @property
    def entrypoints(self) -> tuple[Entrypoint, ...]:
        """Files of the target that a step has to declare."""
        return () if self.library is None else (self.library,)


@dataclass(frozen=True, slots=True)
class TargetGates:
    """Conditions that a target must meet; they decide verdicts alone.

    Attributes:
        require: How much of the chain must load: `none` (a target that is not there is skipped),
            `one` or `all`.
        max_cpu_nodes: Most nodes of a model that may be left to the CPU; None for any number.
        min_coverage: Least share of a model's nodes that must run on the target's own providers,
            0 to 1; None for any that is not 0.
    """

    require: Require = "none"
    max_cpu_nodes: int | None = None
    min_coverage: float | None = None


def environment_of(params: object) -> Environment | None:
    """The environment that a step with these parameters runs its sessions, or a framework, in.

    Args:
        params: Of any kind; those that run a model on one target have it as `target`, those that run a
            framework as `environment`.
    """
    own = getattr(params, "environment", None)
    if isinstance(own, Environment):
        return own
    target = getattr(params, "target", None)
    return target.environment if isinstance(target, Target) else None


def run_by(params: Any, interpreter: Mapping[str, Any]) -> Any:
    """Parameters whose environment knows where it is on this machine.

    Args:
        params: With an environment; see `environment_of`.
        interpreter: JSON of its core.environment.Interpreter.
    """
    known = {"interpreter": interpreter["path"], "folder": interpreter["folder"]}
    own = getattr(params, "environment", None)
    if isinstance(own, Environment):
        return replace(params, environment=replace(own, **known))
    environment = replace(params.target.environment, **known)
    return replace(params, target=replace(params.target, environment=environment))


CPU_TARGET = Target(CPU, (Link(CPU),))
