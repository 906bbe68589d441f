"""Run a package as its user would, and judge what its model gives at the golden points."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import to_json
from onnxbuild.core.step import Finding, Outcome, StepContext
from onnxbuild.core.target import CPU
from onnxbuild.onnxkit.accuracy.judged_outputs import (
    ThresholdRows,
    judge_outputs,
    threshold_report,
)
from onnxbuild.onnxkit.accuracy.output_parts import OutputParts, part_findings
from onnxbuild.onnxkit.accuracy.point_reports import JudgedPoint, findings_of, pooled, report_of
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances, bounds_of
from onnxbuild.onnxkit.accuracy.validation_fixes import noisy_findings
from onnxbuild.onnxkit.bundles.manifest import SUMS_FILE, read_manifest
from onnxbuild.onnxkit.bundles.write import described, names_below
from onnxbuild.onnxkit.data.reference_files import read_reference
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.packages.golden import (
    GOLDEN,
    golden_points,
    read_plain_outputs,
    write_plain_points,
)
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.providers import short_name

if TYPE_CHECKING:
    import numpy as np

NOT_HERE = 3
"""Exit code of a package's own test where the model can't be loaded."""

_MEND = "run `onnxbuild cache verify`"

Outputs = Mapping[str, Mapping[str, "np.ndarray"]]
"""Golden point -> output -> array."""


@dataclass(frozen=True, slots=True)
class RunParams:
    """Parameters of each step that runs a package.

    Attributes:
        subject: What is judged, for messages: `the wheel of variant 'int8'`.
        tolerances: The package's.
    """

    subject: str
    tolerances: VariantTolerances


@dataclass(frozen=True, slots=True)
class NamedRunParams(RunParams):
    """Parameters where the package must be the one of a recipe and a variant."""

    recipe: str
    variant: str


@dataclass(frozen=True, slots=True)
class OwnTest:
    """Result of a package's own test.

    Attributes:
        code: Exit code.
        said: The last line that it printed.
        outputs: What the model gave; empty if the test did not write all of it, since it died.
    """

    code: int
    said: str
    outputs: Outputs

    @property
    def is_complete(self) -> bool:
        """Whether the test ran to its end and wrote the model's outputs."""
        return self.code in (0, 1) and bool(self.outputs)


def run_own_test(
    command: Sequence[Path | str],
    folder: Path,
    outputs: Path,
    read: Callable[[Path], Outputs] = read_plain_outputs,
) -> OwnTest:
    """Run a package's own test in a process of its own.

    Args:
        command: The program and its arguments; it writes what the model gives into `outputs`.
        outputs: Folder that the test makes.
        read: Reads that folder, if the test made it.
    """
    phase("running the package's own test")
    code, printed = run_program(command, folder)
    try:
        found = read(outputs) if outputs.is_dir() else {}
    except (OSError, ValueError):
        found = {}
    return OwnTest(code, printed.splitlines()[-1], found)


def run_program(command: Sequence[Path | str], folder: Path) -> tuple[int, str]:
    """Run a program in a folder; return its exit code, and what it printed: errors, or else its output."""
    import subprocess

    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode, done.stderr.strip() or done.stdout.strip() or "it prints nothing"


def refused(what: object, context: StepContext) -> StepError:
    """Return the error of a package that is not what was made."""
    return StepError(str(what), where=context.where, fix=_MEND)


def checked_package(context: StepContext) -> Path:
    """Return the folder of the step's input `package`, whose files are those of its SHA256SUMS.

    Raises:
        StepError: They are not.
    """
    package = context.input("package")
    if damaged := _damage(package):
        raise refused(f"the package is damaged: {damaged}", context)
    return package


def checked_named_package(context: StepContext, manifest: str) -> tuple[Path, frozenset[str]]:
    """Check the input `package` and its golden points; return its folder, and the names of the points.

    Args:
        context: A step's with NamedRunParams.
        manifest: Name of the manifest.json in the package.

    Raises:
        StepError: The package is damaged, of another recipe or variant, or has other golden points.
    """
    params: NamedRunParams = context.params
    package = checked_package(context)
    try:
        content = json.loads((package / manifest).read_text(encoding="utf-8"))
        owner = f"{content['name']}:{content['variant']}"
    except (OSError, ValueError, LookupError, TypeError) as error:
        what = f"{params.subject}: it has no {manifest} that names its variant"
        raise refused(what, context) from error
    if owner != (wanted := f"{params.recipe}:{params.variant}"):
        raise refused(f"{params.subject}: it is a package of {owner}, not of {wanted}", context)
    expected = context.scratch / "expected"
    points = write_plain_points(expected, context.input("reference"), params.tolerances)
    for name in sorted({*names_below(package / GOLDEN), *names_below(expected)}):
        pair = (package / GOLDEN / name, expected / name)
        if not all(each.is_file() for each in pair) or len({e.read_bytes() for e in pair}) > 1:
            what = f"{params.subject}: {GOLDEN}/{name} is not the reference's"
            raise refused(what, context)
    return package, frozenset(each["name"] for each in points)


def _damage(folder: Path) -> str:
    """Return the fault in a package's files, by its SHA256SUMS; empty if nothing is."""
    try:
        lines = (folder / SUMS_FILE).read_text(encoding="utf-8").splitlines()
        recorded = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    except (OSError, UnicodeDecodeError) as error:
        return f"{SUMS_FILE} can't be read: {error}"
    there = {name for name in names_below(folder) if name != SUMS_FILE}
    if missing := sorted(recorded.keys() - there):
        return f"{missing[0]} is missing"
    if added := sorted(there - recorded.keys()):
        return f"{added[0]} is there, and {SUMS_FILE} does not name it"
    for name, digest in recorded.items():
        if described(folder / name).sha256 != digest:
            return f"{name} is another file than the one that {SUMS_FILE} names"
    return ""


def skipped(context: StepContext, reason: str) -> Outcome:
    """Write report.json of a package that can't run here; `reason` names what is missing."""
    params: RunParams = context.params
    write_report(context.output("report"), {"skipped": reason})
    return Outcome({"skipped": reason}, notes=(f"{params.subject} was not run: {reason}",))


def judged(
    test: OwnTest,
    context: StepContext,
    *,
    command: str,
    fix: str,
    most: int | None = None,
    manifest: Path | None = None,
) -> Outcome:
    """Write report.json; an output out of its tolerance is a finding. A package that can't run here is skipped.

    Args:
        context: The step's, with RunParams: input `reference`, output `report`.
        command: What ran it, for people; empty if the step ran the model itself.
        fix: What to try where an output is out of its tolerance.
        most: Number of golden points in the package; None for as many as fit.
        manifest: The package's, if what runs it is here: a model that may run on the CPU is never skipped then.

    Raises:
        StepError: The test died, or it says that the CPU is not here.
    """
    params: RunParams = context.params
    where, subject = context.where, params.subject
    if test.code == NOT_HERE and manifest is not None and _runs_on_cpu(manifest, where):
        what = f"`{command}` ends with {NOT_HERE}, as if no provider of {subject} were here; the CPU is: {test.said}"
        raise StepError(what, where=where, fix=fix)
    if test.code == NOT_HERE:
        return skipped(context, test.said)
    if not test.is_complete:
        raise StepError(f"`{command}` ends with {test.code}: {test.said}", where=where)
    reference = context.input("reference")
    report, findings = verdict_on(
        test.outputs, reference, params.tolerances, subject=subject, fix=fix, where=where
    )
    points = golden_points(reference, most)
    if lacking := [each.name for each in points if each.name not in test.outputs]:
        what = f"it gives nothing at {len(lacking)} of {len(points)} points, the first is {lacking[0]}"
        findings = (*findings, Finding(what, subject, fix))
        report |= {"passed": False, "findings": to_json(list(findings))}
    elif test.code and not findings:
        findings = (Finding(f"its own test fails: {test.said}", subject),)
        report |= {"passed": False, "findings": to_json(list(findings))}
    ran = {"ran": command} if command else {}
    write_report(context.output("report"), {**ran, **report})
    return Outcome(report["metrics"], findings)


def _runs_on_cpu(manifest: Path, where: str) -> bool:
    """Return whether the CPU is among the providers of a package."""
    try:
        providers = read_manifest(json.loads(manifest.read_text(encoding="utf-8"))).providers
    except (OSError, ValueError, LookupError, TypeError) as error:
        what = f"{manifest.name} of the package can't be read: {error}"
        raise StepError(what, where=where, fix=_MEND) from error
    return any(short_name(each.name) == CPU for each in providers or ())


def verdict_on(
    found: Outputs,
    reference: Path,
    tolerances: VariantTolerances,
    *,
    subject: str,
    fix: str,
    where: str,
) -> tuple[dict[str, Any], tuple[Finding, ...]]:
    """Return (report, findings) of a package's outputs, judged as `validate` judges the variant."""
    rows: list[ThresholdRows] = []
    parts = OutputParts()
    points: list[JudgedPoint] = []
    for point in read_reference(reference):
        if point.name not in found:
            continue
        outputs = {
            name: _as_reference(array, point.outputs.get(name))
            for name, array in found[point.name].items()
        }
        each = judge_outputs(
            point,
            outputs,
            tolerances,
            missing="it is not there",
            where=where,
            rows=rows,
            parts=parts,
        )
        points.append((point.name, point.sizes, each))
    points = pooled(points, lambda name: bounds_of(tolerances, name).equal_min)
    findings = findings_of(points, subject, lambda *_: fix)
    findings += noisy_findings(points, tolerances, subject, lambda *_: fix)
    findings += part_findings(parts.lost(points), subject, lambda *_: fix)
    report = {
        "tolerances": to_json(tolerances),
        **report_of(points, findings),
        **threshold_report(rows),
    }
    return report, findings


def _as_reference(array: np.ndarray, expected: np.ndarray | None) -> np.ndarray:
    """An fp16 model's output in the type of the original's."""
    is_half = expected is not None and array.dtype == "float16"
    return array.astype(expected.dtype) if is_half and expected is not None else array
