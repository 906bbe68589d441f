"""Write the page that shows a build: the reports of its steps as one HTML file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from onnxbuild.core.params import option
from onnxbuild.core.step import Outcome, StepContext, StepKind

PAGE_FILE = "report.html"


@dataclass(frozen=True)
class ReportOptions:
    """A page that shows the build, as a folder `report` next to the variants."""

    page: Literal["none", "html"] = option(
        "none",
        help="html: one file that loads nothing from elsewhere, made at the end of the build",
    )


@dataclass(frozen=True, slots=True)
class ShownReport:
    """One report among the inputs.

    Attributes:
        input: The input's name.
        form: The form that shows it.
        bundle: The variant; empty for a step that variants share.
        step: What the step does.
        target: Where it ran; empty for the first target.
        is_gate: Whether it judges the bundle.
    """

    input: str
    form: str
    bundle: str
    step: str
    target: str
    is_gate: bool


@dataclass(frozen=True, slots=True)
class ReportParams:
    """Parameters of the page.

    Attributes:
        name: The recipe's.
        description: Its own.
        bundles: Variants and programs, in the recipe's order.
        reports: What is shown.
        onnxbuild: The version that draws it.
    """

    name: str
    description: str
    bundles: tuple[str, ...]
    reports: tuple[ShownReport, ...]
    onnxbuild: str


def run(context: StepContext) -> Outcome:
    """Write report.html: the same bytes for the same reports."""
    from onnxbuild.onnxkit.report_page.blocks import ReportSource
    from onnxbuild.onnxkit.report_page.compose import compose
    from onnxbuild.onnxkit.report_page.page import report_page

    params: ReportParams = context.params
    sources = [
        ReportSource(
            each.form,
            each.bundle,
            each.step,
            each.target,
            each.is_gate,
            _files(context.input(each.input)),
        )
        for each in params.reports
    ]
    facts = (f"onnxbuild {params.onnxbuild}",)
    report = compose(params.name, params.description, params.bundles, sources, facts=facts)
    page = report_page([report]).encode()
    (context.output("page") / PAGE_FILE).write_bytes(page)
    return Outcome(metrics={"size_bytes": len(page)})


def _files(folder: Path) -> dict[str, Path]:
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


KIND = StepKind(
    name="report",
    version=8,
    params=ReportParams,
    inputs=("report/*",),
    outputs={"page": "page"},
    toolchain=("jinja2", "markupsafe", "numpy"),
    run=run,
)
