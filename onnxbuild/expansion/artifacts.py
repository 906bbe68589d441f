"""The step that makes an artifact ahead of time, and where what is compiled for a provider runs."""

from __future__ import annotations

from dataclasses import replace

from onnxbuild.core.address import StepAddress
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Recipe, Variant
from onnxbuild.core.step import StepKind
from onnxbuild.core.target import Link, Target
from onnxbuild.expansion.addresses import of_variant
from onnxbuild.expansion.scope import Scope

SECTION = "ahead_of_time"


def add_artifact(
    scope: Scope,
    variant: Variant,
    name: str,
    *,
    kind: StepKind,
    params: object,
    inputs: dict[str, OutputRef],
) -> OutputRef:
    """Add the step that makes it.

    Args:
        scope: The recipe.
        variant: That it is made of.
        name: Its format's.
        kind: What makes it; has the output `artifact`.
        params: Of the kind.
        inputs: The variant's model, and what else it takes.
    """
    address = artifact_address(scope.recipe, variant, name, "make")
    step = scope.step(address, kind, params, inputs, at=variant.location, section=SECTION)
    return OutputRef(step, "artifact")


def artifact_address(recipe: Recipe, variant: Variant, name: str, step: str) -> StepAddress:
    """A step of what is made ahead of time of a variant."""
    return replace(of_variant(recipe, variant, step), artifact=name)


def target_of(recipe: Recipe, provider: str) -> Target:
    """The provider alone, with the options that the first target at home gives it."""
    links = (link for each in recipe.targets if not each.environment for link in each.chain)
    found = next((link for link in links if link.provider == provider), Link(provider))
    return Target(provider, (found,))
