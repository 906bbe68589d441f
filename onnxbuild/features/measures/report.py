"""`report`: a page that shows what a build says of itself, next to the variants."""

from collections.abc import Callable, Iterator, Sequence

from onnxbuild import __version__
from onnxbuild.core.graph import PAGE, Deliverable, OutputRef
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.addresses import shared
from onnxbuild.expansion.feature import Feature, Section
from onnxbuild.expansion.reported import Reported
from onnxbuild.expansion.scope import Scope
from onnxbuild.steps import report

NAME = "report"


def _concludes(scope: Scope, reported: Callable[[], Sequence[Reported]]) -> Iterator[Deliverable]:
    """Yield the page, where the recipe asks for it and delivers anything."""
    recipe = scope.recipe
    asked = recipe.section(NAME, report.ReportOptions).page != "none"
    found = reported() if asked else ()
    bundles = tuple(each.bundle for each in found if each.form == "bundle")
    if not bundles:
        return
    named = {f"report/{number:04d}": each for number, each in enumerate(found)}
    params = report.ReportParams(
        name=recipe.name,
        description=recipe.description,
        bundles=tuple(
            dict.fromkeys(each.bundle for each in found if each.is_gate and each.bundle)
        ),
        reports=tuple(
            report.ShownReport(
                name, each.form, each.bundle, each.step, each.target, is_gate=each.is_gate
            )
            for name, each in named.items()
        ),
        onnxbuild=__version__,
    )
    step = scope.step(
        shared(recipe, NAME),
        report.KIND,
        params,
        {name: each.report for name, each in named.items()},
        section=NAME,
    )
    page = OutputRef(step, "page")
    yield Deliverable(recipe.name, NAME, ((page, ""),), family=PAGE)


def _faults(parts: Parts) -> Iterator[Fault]:
    """A section that asks for nothing, and a variant with the name of the page's folder."""
    written, options = parts.node(NAME), parts.sections.get(NAME)
    if written is not None and written.value == {}:
        yield Fault(
            f"{NAME}: an empty section asks for no page", parts.at(NAME), "write `report: html`"
        )
    asked = isinstance(options, report.ReportOptions) and options.page != "none"
    if asked and NAME in parts.variants:
        what = f"variant '{NAME}' has the name of the folder that the page is written to"
        yield Fault(what, parts.key_at("quantization", NAME), "rename the variant")


FEATURE: Feature = Feature(
    name=NAME,
    sections=(Section(name=NAME, options=report.ReportOptions, short="page"),),
    kinds=(report.KIND,),
    faults=_faults,
    concludes=_concludes,
)
"""Its page shows the reports of all features, which name their forms in `shown`."""
