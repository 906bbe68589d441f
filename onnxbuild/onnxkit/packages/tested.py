"""The verdict of a step that ran a package's own test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import to_json
from onnxbuild.core.step import Finding, Outcome, StepContext
from onnxbuild.core.target import CPU
from onnxbuild.onnxkit.bundles.manifest import read_manifest
from onnxbuild.onnxkit.packages.golden import golden_points
from onnxbuild.onnxkit.packages.own_files import PackageError, check_package
from onnxbuild.onnxkit.packages.own_test import NOT_HERE, OwnTest
from onnxbuild.onnxkit.packages.sums import damage
from onnxbuild.onnxkit.packages.verdict import verdict_on
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.providers import short_name

if TYPE_CHECKING:
    from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances


MEND = "run `onnxbuild cache verify`"
"""Fix for a package that differs from the one that was built."""


def refused(what: object, context: StepContext) -> StepError:
    """Return the error of a package that is not what was made."""
    return StepError(str(what), where=context.where, fix=MEND)


def refuse_damage(context: StepContext) -> Path:
    """Return the folder of the step's input `package`, whose files are those of its SHA256SUMS.

    Raises:
        StepError: They are not.
    """
    package = context.input("package")
    if damaged := damage(package):
        raise refused(f"the package is damaged: {damaged}", context)
    return package


def check_own(
    context: StepContext,
    tolerances: VariantTolerances,
    *,
    subject: str,
    manifest: str,
    recipe: str,
    variant: str,
) -> frozenset[str]:
    """Check the input `package` as `check_package` does; return the names of its golden points.

    Args:
        context: The step's.
        tolerances: The variant's.
        subject: What is judged, for messages.
        manifest: Name of the package's manifest.json.
        recipe: The name that the manifest must have.
        variant: The same.

    Raises:
        StepError: The package is not what was made.
    """
    try:
        return check_package(
            context.input("package"),
            manifest=manifest,
            recipe=recipe,
            variant=variant,
            reference=context.input("reference"),
            tolerances=tolerances,
            scratch=context.scratch,
        )
    except PackageError as error:
        raise refused(f"{subject}: {error}", context) from error


def skipped(context: StepContext, subject: str, reason: str) -> Outcome:
    """Write report.json of a package that can't run here.

    Args:
        context: The step's.
        subject: What is judged, for messages.
        reason: What is not here.
    """
    write_report(context.output("report"), {"skipped": reason})
    return Outcome({"skipped": reason}, notes=(f"{subject} was not run: {reason}",))


def outcome_of(
    test: OwnTest,
    context: StepContext,
    tolerances: VariantTolerances,
    *,
    subject: str,
    command: str,
    fix: str,
    most: int | None = None,
    manifest: Path | None = None,
) -> Outcome:
    """Write report.json; an output out of its tolerance is a finding. A package that can't run here is skipped.

    Args:
        test: What became of it.
        context: The step's: input `reference`, output `report`.
        tolerances: The variant's.
        subject: What is judged, such as `the wheel of variant 'int8'`.
        command: What ran it, for people.
        fix: What to try where an output is out of its tolerance.
        most: Number of golden points in the package; None for as many as fit.
        manifest: The package's, if what runs it is here: a model that may run on the CPU is never skipped then.

    Raises:
        StepError: The test died, or it says that the CPU is not here.
    """
    if test.code == NOT_HERE and manifest is not None and _runs_on_cpu(manifest, context.where):
        what = f"`{command}` ends with {NOT_HERE}, as if no provider of {subject} were here; the CPU is: {test.said}"
        raise StepError(what, where=context.where, fix=fix)
    if test.code == NOT_HERE:
        return skipped(context, subject, test.said)
    if not test.is_complete:
        raise StepError(f"`{command}` ends with {test.code}: {test.said}", where=context.where)
    report, findings = verdict_on(
        test.outputs,
        context.input("reference"),
        tolerances,
        subject=subject,
        fix=fix,
        where=context.where,
    )
    points = golden_points(context.input("reference"), most)
    if lacking := [each.name for each in points if each.name not in test.outputs]:
        what = f"it gives nothing at {len(lacking)} of {len(points)} points, the first is {lacking[0]}"
        findings = (*findings, Finding(what, subject, fix))
        report |= {"passed": False, "findings": to_json(list(findings))}
    elif test.code and not findings:
        findings = (Finding(f"its own test fails: {test.said}", subject),)
        report |= {"passed": False, "findings": to_json(list(findings))}
    write_report(context.output("report"), {"ran": command, **report})
    return Outcome(report["metrics"], findings)


def _runs_on_cpu(manifest: Path, where: str) -> bool:
    """Return whether the CPU is among the providers of a package."""
    try:
        providers = read_manifest(json.loads(manifest.read_text(encoding="utf-8"))).providers
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise StepError(
            f"{manifest.name} of the package can't be read: {error}",
            where=where,
            fix=MEND,
        ) from error
    return any(short_name(each.name) == CPU for each in providers or ())
