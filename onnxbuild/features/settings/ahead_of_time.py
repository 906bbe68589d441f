"""`ahead_of_time`: which artifacts are made, and of which variants."""

from collections.abc import Iterator

from onnxbuild.core.recipe import Recipe
from onnxbuild.document.faults import Fault, Remark
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.artifacts import SECTION
from onnxbuild.expansion.feature import Feature, Section
from onnxbuild.expansion.requested import AheadOfTimeOptions, request_faults


def _faults(parts: Parts) -> Iterator[Fault]:
    yield from request_faults(parts, SECTION)


def _remarks(recipe: Recipe, cores: int) -> Iterator[Remark]:
    del cores
    asked = recipe.section(SECTION, AheadOfTimeOptions).requested
    if asked and all(each.environment for each in recipe.targets):
        yield Remark(
            f"{recipe.name}: {', '.join(asked)} of {SECTION}: made, validated and measured "
            "with the ONNX Runtime of onnxbuild's environment; every target has another",
            recipe.lines.get(SECTION),
        )


FEATURE = Feature(
    name=SECTION,
    sections=(Section(name=SECTION, options=AheadOfTimeOptions, takes_names=True),),
    faults=_faults,
    remarks=_remarks,
)
