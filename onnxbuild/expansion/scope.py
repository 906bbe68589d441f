"""The context in which a feature expands a recipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from onnxbuild.core.address import StepAddress
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Location, Recipe, Variant
from onnxbuild.core.step import StepKind
from onnxbuild.expansion.comparison import Comparison
from onnxbuild.expansion.graph_builder import GraphBuilder
from onnxbuild.expansion.target_options import TargetOptions
from onnxbuild.host.host import TARGET_CPUS, HostFacts
from onnxbuild.onnxkit.benchmark.baseline import Baseline
from onnxbuild.onnxkit.processing.labels import LabelsFile


@dataclass(frozen=True, slots=True)
class Source:
    """Outputs that a frontend makes of a recipe's model.

    Attributes:
        model: Canonical ONNX.
        config: The model's own description (`config.json` of a transformer), for fusions.
        check: The report on `model`.
    """

    model: OutputRef
    config: OutputRef
    check: OutputRef


@dataclass(frozen=True, slots=True)
class Scope:
    """One recipe, and the graph that it is expanded into.

    Attributes:
        graph: Where steps go.
        recipe: What is expanded.
        host: The machine that builds.
        choices: `RECIPE:VARIANT` -> the trial that a lock names; `RECIPE:VARIANT/session` -> its
            session's settings.
        comparison: Models from elsewhere to compare with; None to measure the variants once.
        source: What the frontend made; asked for when it is needed, so that a recipe without ONNX
            exports none.
        reference: (variant, axis -> its one size) -> what the user's framework computes.
        score: Its score by the user's metric; None if the recipe evaluates nothing.
        baseline: How the benchmark runs the model as its user does.
        model: A variant's model, by the feature of its mode; for modes that try others.
        trials: A variant -> trial -> the variant that it is; for the same.
        inputs: What features give to each step of a kind.
        labels: The files that name the classes of the recipe's models.
    """

    graph: GraphBuilder
    recipe: Recipe
    host: HostFacts
    choices: Mapping[str, str]
    comparison: Comparison | None
    source: Callable[[], Source]
    reference: Callable[[Variant | None, Mapping[str, int]], OutputRef]
    score: Callable[[], OutputRef | None]
    baseline: Callable[[], Baseline]
    model: Callable[[Variant], OutputRef]
    trials: Callable[[Variant], Mapping[str, Variant]]
    inputs: Callable[[StepKind], Mapping[str, OutputRef]]
    labels: tuple[LabelsFile, ...]

    @property
    def machine(self) -> HostFacts:
        """Machine that the recipe's models will run on."""
        return TARGET_CPUS.get(self.recipe.section("target", TargetOptions).cpu, self.host)

    def step(
        self,
        address: StepAddress,
        kind: StepKind,
        params: object,
        inputs: Mapping[str, OutputRef] | None = None,
        *,
        at: Location | None = None,
        section: str = "",
        optional_inputs: tuple[str, ...] = (),
        code: tuple[str, ...] = (),
    ) -> str:
        """Add a step; returns its name, or that of the equal one that was there first.

        Args:
            address: Where it stands.
            kind: What it does.
            params: Its parameters.
            inputs: What it takes.
            at: Where the recipe asks for it.
            section: The key of the recipe that does, where there is one place for it.
            optional_inputs: Inputs that it runs without where the step that makes them is not applicable
                to the model.
            code: Names in its toolchain besides the kind's.
        """
        location = self.recipe.lines.get(section, at or self.recipe.location)
        return self.graph.step(
            address,
            kind,
            params,
            location,
            {**(inputs or {}), **self.inputs(kind)},
            optional_inputs=optional_inputs,
            code=code,
        )
