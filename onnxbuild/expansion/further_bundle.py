"""A bundle that a feature makes of a variant besides the variant's own."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.graph import OutputRef
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances


@dataclass(frozen=True, slots=True)
class FurtherBundle:
    """A bundle that is delivered next to a variant's own, in a folder VARIANT-NAME.

    Attributes:
        name: Unique among those of a variant.
        files: The bundle.
        judged_by: Names of the steps that judge it; each has the input `reference`.
        reference: What it is held against.
        tolerances: What it is allowed.
    """

    name: str
    files: OutputRef
    judged_by: tuple[str, ...]
    reference: OutputRef
    tolerances: VariantTolerances
