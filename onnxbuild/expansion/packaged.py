"""Where the steps of a package stand, and what the bundle in it is held against: of a variant, or of its pipeline."""

from __future__ import annotations

from onnxbuild.core.address import StepAddress
from onnxbuild.core.graph import OutputRef
from onnxbuild.expansion.artifacts import artifact_address
from onnxbuild.expansion.feature import Subject
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.tolerances import tolerances_of
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances


def bundle_name(subject: Subject) -> str:
    """Return the name of the bundle that is packaged: `int8`, `int8-pipeline`."""
    name = subject.variant.name
    return name if subject.further is None else f"{name}-{subject.further.name}"


def package_address(scope: Scope, subject: Subject, form: str, step: str) -> StepAddress:
    """Return the address of a step of a package.

    Args:
        scope: The recipe.
        subject: What is packaged.
        form: The format's name.
        step: What it does: `package`, `run`.
    """
    artifact = form if subject.further is None else f"{subject.further.name}-{form}"
    return artifact_address(scope.recipe, subject.variant, artifact, step)


def package_reference(scope: Scope, subject: Subject) -> OutputRef:
    """Return what the bundle that is packaged was held against: its golden points."""
    if subject.further is not None:
        return subject.further.reference
    return scope.reference(subject.variant, subject.session.settings.free_dimensions)


def package_tolerances(scope: Scope, subject: Subject) -> VariantTolerances:
    """Return the tolerances of the bundle that is packaged."""
    if subject.further is not None:
        return subject.further.tolerances
    return tolerances_of(scope.recipe, subject.variant)
