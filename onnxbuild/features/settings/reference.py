"""`reference`: the points and samples that the user's own model is run on, whatever the frontend."""

from onnxbuild.core.axis import Point, reference_points
from onnxbuild.core.entrypoint import PIPELINE_DATA
from onnxbuild.core.recipe import Recipe
from onnxbuild.expansion.feature import Feature, Section
from onnxbuild.expansion.reference_plan import SECTION
from onnxbuild.onnxkit.data.reference_feeds import ReferenceOptions


def _points(recipe: Recipe) -> tuple[Point, ...]:
    options = recipe.section(SECTION, ReferenceOptions)
    return reference_points(recipe.axes, options.points, options.seed) if recipe.axes else ()


FEATURE = Feature(
    name=SECTION,
    sections=(
        Section(
            name=SECTION,
            options=ReferenceOptions,
            callables={
                "samples": (
                    "samples",
                    "callable that yields real feeds: input name -> array; or `pipeline`: what really goes into the component",
                ),
                "model": (
                    "original",
                    "callable that returns the original of an .onnx file, to compare with: a torch.nn.Module or a function of arrays",
                ),
            },
            has_points=True,
            built_in={"samples": (PIPELINE_DATA,)},
        ),
    ),
    points=_points,
)
