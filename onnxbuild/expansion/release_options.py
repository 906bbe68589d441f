"""The section `release`: what a release is held to. It enters no step's key."""

from __future__ import annotations

from dataclasses import dataclass, field

from onnxbuild.core.params import option

SECTION = "release"


@dataclass(frozen=True, slots=True)
class Budgets:
    """Limits on how much worse than in the previous release a variant may be (`release --previous`)."""

    size_increase: float | None = option(
        None, help="of the model's files, as a share: 0.05 allows 5 % more", minimum=0
    )
    latency_ratio_increase: float | None = option(
        None,
        help="of the median latency divided by PyTorch's, as a share; compared at every point "
        "measured in both, if both were locked on machines of one kind",
        minimum=0,
    )
    accuracy_drop: float | None = option(
        None, help="of the score of `evaluate`, in its own unit", minimum=0
    )
    error_increase: float | None = option(
        None,
        help="of the greatest absolute difference from the reference, and of the share of elements of "
        "integer outputs that differ, as a share",
        minimum=0,
    )


@dataclass(frozen=True, slots=True)
class ReleaseOptions:
    """Requirements on a release; no step's key depends on them."""

    budgets: Budgets = field(
        default_factory=Budgets,
        metadata={"help": "how much worse than the previous release a variant may be"},
    )
    packages: bool = option(True, help="whether a release holds the recipe's `packages`, too")
