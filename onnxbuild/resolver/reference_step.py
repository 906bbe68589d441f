"""The step that runs PyTorch at the reference points; all that need it share one."""

from __future__ import annotations

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Recipe
from onnxbuild.resolver.assembly import Assembly
from onnxbuild.resolver.sections import typed
from onnxbuild.steps import reference


def add_reference(assembly: Assembly, recipe: Recipe) -> OutputRef:
    """Add a recipe's reference step, or find it again.

    Args:
        assembly: Where it goes.
        recipe: Whose.

    Returns: PyTorch's inputs and outputs at several points.
    """
    step = assembly.step(
        f"{recipe.name}:reference",
        reference.KIND.name,
        reference.ReferenceParams(
            model=recipe.model,
            inputs=recipe.inputs,
            outputs=recipe.outputs,
            axes=recipe.axes,
            samples=recipe.entrypoints.get("samples"),
            options=typed(recipe.sections["reference"]),
        ),
        recipe.lines.get("reference", recipe.location),
    )
    return OutputRef(step, "reference")
