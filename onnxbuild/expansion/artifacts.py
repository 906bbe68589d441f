"""The steps that make and judge what is made ahead of time, and where what is compiled for a provider runs."""

from collections.abc import Iterator
from dataclasses import replace

from onnxbuild.core.graph import OutputRef, StepAddress
from onnxbuild.core.recipe import Recipe, Variant
from onnxbuild.core.step import StepKind
from onnxbuild.core.target import CPU_TARGET, Link, Target
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.addresses import of_variant
from onnxbuild.expansion.feature import AheadOfTimeModel
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.ahead_of_time.options import OrtFormatOptions
from onnxbuild.onnxkit.ahead_of_time.ort_format import REPLAY
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.providers import full_name
from onnxbuild.steps import ort_format

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
        variant: That it is made of.
        kind: What makes it; has the output `artifact`.
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


def only_in_environments(parts: Parts, artifact: str, provider: str) -> Iterator[Fault]:
    """Yield it where the recipe knows the provider in environments alone: what compiles is in none.

    Args:
        artifact: What is made for it.
    """
    targets = [
        target
        for target in parts.targets.values()
        if any(link.provider == provider for link in target.chain)
    ]
    if targets and all(target.environment for target in targets):
        what = (
            f"{SECTION}.{artifact} compiles with the ONNX Runtime of onnxbuild's environment; target "
            f"'{targets[0].name}' has '{provider}' in an environment of its own "
            f"({targets[0].environment})"
        )
        fix = (
            f"install an ONNX Runtime with {full_name(provider)} next to onnxbuild and take "
            f"`environment` out of that target, or remove `{artifact}`"
        )
        yield Fault(what, parts.key_at(SECTION, artifact), fix)


def add_ort_model(
    scope: Scope, variant: Variant, model: OutputRef, name: str, options: OrtFormatOptions
) -> AheadOfTimeModel:
    """Add it; `name` is that of what asks for it."""
    params = ort_format.OrtFormatParams(options)
    made = add_artifact(
        scope, variant, name, kind=ort_format.KIND, params=params, inputs={"model": model}
    )
    replayed = SessionSettings(config={**REPLAY} if options.style == "runtime" else {})
    return AheadOfTimeModel(name, made, CPU_TARGET, replayed)
