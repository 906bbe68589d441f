"""Steps over the `fidelity` data: the baseline's vectors, how near a model is, what is sensitive."""

from __future__ import annotations

from typing import Any

from onnxbuild.core.address import StepAddress
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Recipe
from onnxbuild.core.target import Target
from onnxbuild.onnxkit.sensitivity.static_rounding import StaticScheme
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.resolver.assembly import Assembly
from onnxbuild.resolver.sections import typed
from onnxbuild.resolver.target_steps import TargetSteps
from onnxbuild.steps import baseline, fidelity, sensitivity


class FidelitySteps:
    """Adds them to an assembly.

    Args:
        assembly: Where the steps go.
    """

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._targets = TargetSteps(assembly)

    def report(
        self,
        recipe: Recipe,
        address: StepAddress,
        model: OutputRef,
        fp32: OutputRef,
        target: Target,
        *,
        baseline: StepAddress,
        settings: SessionSettings,
    ) -> OutputRef:
        """How near a model is to the fp32 model.

        Args:
            recipe: Names the data.
            address: The step's.
            model: What is compared.
            fp32: What it is compared with.
            target: Where the model runs.
            baseline: Address of the step that runs the fp32 model.
            settings: How its session runs it.
        """
        step = self._assembly.step(
            address,
            fidelity.KIND.name,
            fidelity.FidelityParams(
                **self._data(recipe),
                samples=typed(recipe.sections["fidelity"]).samples,
                target=target,
                session=settings,
            ),
            recipe.lines.get("fidelity", recipe.location),
            {
                "model": model,
                "baseline": self._baseline(recipe, baseline, fp32),
                **self._targets.inputs(recipe, target),
            },
        )
        return OutputRef(step, "report")

    def sensitivity(
        self,
        recipe: Recipe,
        model: OutputRef,
        address: StepAddress,
        *,
        static: StaticScheme | None = None,
        calibration: OutputRef | None = None,
    ) -> OutputRef:
        """What few bits in each node do.

        Args:
            recipe: Names the data, or the metric.
            model: In fp32.
            address: The step's.
            static: How a static variant rounds; None rounds as dynamic ones do.
            calibration: Its ranges.
        """
        options: sensitivity.SensitivityOptions = typed(recipe.sections["sensitivity"])
        by_metric = options.rank_by == "metric"
        step = self._assembly.step(
            address,
            sensitivity.KIND.name,
            sensitivity.SensitivityParams(
                data=recipe.entrypoints["evaluation" if by_metric else "fidelity"],
                project=recipe.entrypoints.get("projection"),
                inputs=recipe.inputs,
                samples=options.samples,
                runs=options.runs,
                metric=recipe.entrypoints["metric"] if by_metric else None,
                static=static,
            ),
            recipe.lines.get("evaluate" if by_metric else "fidelity", recipe.location),
            {"model": model, **({"calibration": calibration} if calibration else {})},
        )
        return OutputRef(step, "sensitivity")

    def _baseline(self, recipe: Recipe, address: StepAddress, fp32: OutputRef) -> OutputRef:
        step = self._assembly.step(
            address,
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
