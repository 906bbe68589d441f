"""The gate `size`: a model may not be larger than the recipe says."""

from collections.abc import Mapping
from dataclasses import dataclass

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.params import option
from onnxbuild.core.step import Finding, Outcome, StepContext, StepKind
from onnxbuild.expansion import cells
from onnxbuild.expansion.addresses import of_variant
from onnxbuild.expansion.feature import Column, Feature, Section, Subject
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.reports import write_report


@dataclass(frozen=True)
class SizeOptions:
    """How large a variant's model may be."""

    max_bytes: int = option(0, help="most bytes of all its files; 0 for any number", minimum=0)


def run(context: StepContext) -> Outcome:
    """Write report.json; a model that is too large is a finding."""
    found = sum(each.stat().st_size for each in context.input("model").rglob("*"))
    most = context.params.max_bytes
    findings = ()
    if found > most:
        what = f"the model has {found} bytes; at most {most} are allowed"
        findings = (Finding(what, context.where, "raise `size.max_bytes`, or make it smaller"),)
    report = {"passed": not findings, "size_bytes": found, "max_bytes": most}
    write_report(context.output("report"), report)
    return Outcome({"size_bytes": found}, findings)


KIND = StepKind(
    name="example-size",
    version=1,
    params=SizeOptions,
    inputs=("model",),
    outputs={"report": "report"},
    toolchain=(),
    run=run,
)


def _reports(scope: Scope, subject: Subject) -> Mapping[str, OutputRef]:
    options = scope.recipe.section("size", SizeOptions)
    if not options.max_bytes:
        return {}
    address = of_variant(scope.recipe, subject.variant, "size")
    step = scope.step(address, KIND, options, {"model": subject.model}, section="size")
    return {"gate/size": OutputRef(step, "report")}


FEATURE = Feature(
    name="size",
    sections=(Section(name="size", options=SizeOptions),),
    kinds=(KIND,),
    reports=_reports,
    columns=(Column("checked size", "size", cells.size("size_bytes")),),
    released=(KIND.name,),
)
