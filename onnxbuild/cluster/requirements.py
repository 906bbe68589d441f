"""Resources that steps need of a worker."""

from __future__ import annotations

from onnxbuild.catalog import CATALOG
from onnxbuild.core.graph import Step
from onnxbuild.core.step import GPU
from onnxbuild.core.target import Target
from onnxbuild.providers import is_known, named

GPU_RESOURCE = "GPU"
SLOTS = "steps"
"""Resource that every worker has as often as it runs steps at a time; one that runs alone takes all of it."""

TAGS = {"gpu": GPU_RESOURCE}
"""Tag of `onnxbuild worker` -> resource."""

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


def runs_alone(step: Step) -> bool:
    """Return whether nothing else may run next to a step."""
    kind = CATALOG.get(step.kind)
    return kind is not None and kind.exclusive
