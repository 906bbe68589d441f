"""The fault of compiling for a provider that only another environment has."""

from __future__ import annotations

from collections.abc import Iterator

from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.artifacts import SECTION
from onnxbuild.providers import full_name


def only_in_environments(parts: Parts, artifact: str, provider: str) -> Iterator[Fault]:
    """Yield it where the recipe knows the provider in environments alone: what compiles is in none.

    Args:
        parts: The recipe.
        artifact: What is made for it.
        provider: Its short name.
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
