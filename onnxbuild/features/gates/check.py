"""Whether a model is valid ONNX, with the inputs, outputs and axes that the recipe declares."""

from collections.abc import Mapping

from onnxbuild.core.graph import OutputRef
from onnxbuild.expansion.addresses import of_variant
from onnxbuild.expansion.feature import Feature, Subject
from onnxbuild.expansion.scope import Scope
from onnxbuild.steps import check


def _reports(scope: Scope, subject: Subject) -> Mapping[str, OutputRef]:
    recipe, variant = scope.recipe, subject.variant
    step = scope.step(
        of_variant(recipe, variant, "check"),
        check.KIND,
        check.CheckParams(recipe.inputs, recipe.outputs, recipe.axes, None),
        {"model": subject.model},
        at=variant.location,
    )
    return {"check": OutputRef(step, "report"), "export-check": scope.source().check}


FEATURE = Feature(
    name="check",
    kinds=(check.KIND,),
    reports=_reports,
    released=(check.KIND.name,),
    shown={check.KIND.name: "plain"},
)
