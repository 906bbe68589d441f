"""Addresses of a package's steps, and the reference of the bundle in it: of a variant, or of its pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from onnxbuild.core.address import StepAddress
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.step import StepKind
from onnxbuild.expansion.artifacts import artifact_address
from onnxbuild.expansion.asked import PACKAGES, NamedBundle
from onnxbuild.expansion.feature import Laid, Subject
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.tolerances import tolerances_of
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances

Inputs = Mapping[str, OutputRef]


def bundle_name(subject: Subject) -> str:
    """Return the name of the bundle that is packaged: `int8`, `int8-pipeline`."""
    name = subject.variant.name
    return name if subject.further is None else f"{name}-{subject.further.name}"


def named_bundle(subject: Subject) -> NamedBundle:
    """Return the bundle that is packaged, as formats are asked whether they take it."""
    further = subject.further
    return NamedBundle(
        bundle_name(subject), further is not None, further is not None and further.has_text
    )


def package_address(scope: Scope, subject: Subject, form: str, step: str) -> StepAddress:
    """Return the address of a step of a package.

    Args:
        scope: The recipe.
        subject: What is packaged.
        form: The format's name.
        step: What it does: `package`, `run`.
    """
    further = "" if subject.further is None else subject.further.name
    return replace(artifact_address(scope.recipe, subject.variant, form, step), further=further)


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


def add_package(
    scope: Scope, subject: Subject, form: str, kind: StepKind, *, params: Any, inputs: Inputs
) -> OutputRef:
    """Add the step that makes a package; return its folder.

    Args:
        scope: The recipe.
        subject: What is packaged.
        form: The format's name.
        kind: The step's.
        params: Its parameters.
        inputs: Input name -> what it takes.
    """
    step = scope.step(
        package_address(scope, subject, form, "package"),
        kind,
        params,
        inputs,
        at=subject.variant.location,
        section=PACKAGES,
    )
    return OutputRef(step, "bundle")


def add_run(
    scope: Scope, subject: Subject, form: str, kind: StepKind, *, params: Any, package: OutputRef
) -> tuple[Laid, ...]:
    """Add the step that runs a package and holds it against the reference; its report is laid as run.json.

    Args:
        scope: The recipe.
        subject: What is packaged.
        form: The format's name.
        kind: The step's, with the inputs `package` and `reference`, and the output `report`.
        params: Its parameters.
        package: What `add_package` gave.
    """
    step = scope.step(
        package_address(scope, subject, form, "run"),
        kind,
        params,
        {"package": package, "reference": package_reference(scope, subject)},
        at=subject.variant.location,
        section=PACKAGES,
    )
    return (Laid(OutputRef(step, "report"), "run.json"),)
