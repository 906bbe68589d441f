"""Bundle a variant that passed its gates: model, manifest, checksums, a loader."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.recipe import Axis, Precision
from onnxbuild.core.step import Outcome, StepContext, StepKind


@dataclass(frozen=True, slots=True)
class PackageParams:
    """What the manifest says beside what it finds in its inputs.

    Attributes:
        recipe_sha256: Digest of the part of the recipe that this variant is made from.
        providers: Execution providers (short names) in order of preference, with options.
    """

    recipe: str
    recipe_sha256: str
    variant: str
    precision: Precision
    axes: tuple[Axis, ...]
    providers: tuple[str, ...]
    provider_options: dict[str, dict[str, str]]


def run(context: StepContext) -> Outcome:
    """Write the bundle."""
    raise NotImplementedError


KIND = StepKind(
    name="package",
    version=1,
    params=PackageParams,
    inputs=("model", "check", "validation/*", "evaluation/*"),
    outputs={"bundle": "bundle"},
    toolchain=("onnx", "onnxruntime"),
    run=run,
)
