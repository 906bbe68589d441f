"""Steps over the `fidelity` data: the baseline's vectors, how near a model is, what is sensitive."""

from __future__ import annotations

from typing import Any

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Recipe
from onnxbuild.resolver.assembly import Assembly
from onnxbuild.resolver.sections import typed
from onnxbuild.steps import baseline, fidelity, sensitivity

_SENSITIVITY_SAMPLES = 8
"""Each runs once a node; on MiniLM 8 sentences give nearly the order that 228 do."""


class FidelitySteps:
    """Adds them to an assembly.

    Args:
        assembly: Where the steps go.
    """

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    def report(
        self, recipe: Recipe, name: str, model: OutputRef, fp32: OutputRef, provider: str
    ) -> OutputRef:
        """How near a model is to the fp32 model.

        Args:
            recipe: Names the data.
            name: The step's, without the recipe's.
            model: What is compared.
            fp32: What it is compared with.
            provider: Short name of what runs the model.
        """
        step = self._assembly.step(
            f"{recipe.name}:{name}",
            fidelity.KIND.name,
            fidelity.FidelityParams(
                **self._data(recipe),
                samples=typed(recipe.sections["fidelity"]).samples,
                provider=provider,
                provider_options=dict(recipe.provider_options.get(provider, {})),
            ),
            recipe.lines.get("fidelity", recipe.location),
            {"model": model, "baseline": self._baseline(recipe, fp32)},
        )
        return OutputRef(step, "report")

    def sensitivity(self, recipe: Recipe, fp32: OutputRef, name: str = "sensitivity") -> OutputRef:
        """What 8 bits in each node do."""
        step = self._assembly.step(
            f"{recipe.name}:{name}",
            sensitivity.KIND.name,
            sensitivity.SensitivityParams(**self._data(recipe), samples=_SENSITIVITY_SAMPLES),
            recipe.lines.get("fidelity", recipe.location),
            {"model": fp32},
        )
        return OutputRef(step, "sensitivity")

    def _baseline(self, recipe: Recipe, fp32: OutputRef) -> OutputRef:
        step = self._assembly.step(
            f"{recipe.name}:baseline",
            baseline.KIND.name,
            baseline.BaselineParams(
                **self._data(recipe), samples=typed(recipe.sections["fidelity"]).samples
            ),
            recipe.lines.get("fidelity", recipe.location),
            {"model": fp32},
        )
        return OutputRef(step, "vectors")

    def _data(self, recipe: Recipe) -> dict[str, Any]:
        return {
            "data": recipe.entrypoints["fidelity"],
            "project": recipe.entrypoints.get("projection"),
            "inputs": recipe.inputs,
        }
