"""HTML reports of builds and variants; the one place where they are connected."""

from __future__ import annotations

from pathlib import Path

from onnxbuild.core.errors import UsageError
from onnxbuild.output.build import ResultRecord


def write_report(build: ResultRecord, variant: str = "") -> Path:
    """Write the HTML report of a build, or of one of its variants, and return its path.

    Args:
        build: What the build gave.
        variant: The variant's name; empty for all.

    Raises:
        UsageError: This version writes none.
    """
    what = f"'{variant}'" if variant else "this build"
    raise UsageError(
        f"this version of onnxbuild writes no HTML report of {what}",
        fix=f"the reports in JSON are in {build['out']}",
    )
