"""Resources that steps need of a worker."""

from collections.abc import Iterable

from onnxbuild.catalog import CATALOG
from onnxbuild.cluster.addresses import tag_of
from onnxbuild.core.graph import Step
from onnxbuild.core.step import GPU
from onnxbuild.core.target import Target
from onnxbuild.host.host import TARGET_CPUS, HostFacts
from onnxbuild.providers import is_known, named

GPU_RESOURCE = "GPU"
SLOTS = "steps"
"""Resource that every worker has as often as it runs steps at a time; one that runs alone takes all of it."""

GPU_TAG = "gpu"
"""Tag of a worker with GPUs, which are a resource: one step at a time has them."""

_MAIN_MEMORY = "cpu"


def needs_gpu(step: Step) -> bool:
    """Return whether a step runs on a GPU: its target's sessions do, or it compiles for one."""
    kind = CATALOG.get(step.kind)
    if kind is not None and GPU in kind.toolchain:
        return True
    target = getattr(step.params, "target", None)
    if not isinstance(target, Target):
        return False
    providers = [link.provider for link in target.chain]
    return any(is_known(each) and named(each).memory != _MAIN_MEMORY for each in providers)


def tags_of(facts: HostFacts, own: Iterable[str]) -> list[str]:
    """Return the tags of a worker: those that it was given, and the names of the target CPUs that it is.

    Args:
        facts: Its CPU.
        own: Those that it was given.
    """
    cpus = (
        name
        for name, each in TARGET_CPUS.items()
        if (facts.is_arm if each.is_arm else facts.machine == each.machine)
        and each.cpu_flags <= facts.cpu_flags
    )
    return sorted({*map(tag_of, own), *cpus})


def is_host_bound(step: Step) -> bool:
    """Return whether a step's result holds for one kind of machine alone."""
    kind = CATALOG.get(step.kind)
    return kind is not None and kind.host_bound and not kind.any_host(step.params)


def runs_alone(step: Step) -> bool:
    """Return whether nothing else may run next to a step."""
    kind = CATALOG.get(step.kind)
    return kind is not None and kind.exclusive
