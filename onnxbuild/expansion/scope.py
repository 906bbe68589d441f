"""The context in which a feature expands a recipe: one graph, in which equal steps become one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from onnxbuild.core.digest import tagged_sha256
from onnxbuild.core.errors import UsageError
from onnxbuild.core.graph import Deliverable, Graph, OutputRef, Step, StepAddress, topological
from onnxbuild.core.params import option
from onnxbuild.core.recipe import Entrypoint, Location, Recipe, Variant
from onnxbuild.core.step import StepKind
from onnxbuild.host.host import TARGET_CPUS, HostFacts, TargetCpu
from onnxbuild.onnxkit.benchmark.baseline import Baseline
from onnxbuild.onnxkit.processing.labels import LabelsFile


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """The machine that the models will run on; it decides options that are left at `auto`."""

    cpu: TargetCpu = option(
        "this",
        help="the CPU's instructions for 8-bit sums: those of `this` machine, or of the weakest CPU that the models must "
        "run on. Sums saturate on avx2 and avx512 unless `reduce_range` prevents it; not on the others",
    )


@dataclass(frozen=True, slots=True)
class ComparisonModel:
    """One model.

    Attributes:
        name: In reports; no variant has it.
        shown: As the user named it.
        model: Its files: the model first, then what belongs to it.
        format: Of a PyTorch program; empty for ONNX and ORT format.
    """

    name: str
    shown: str
    model: Entrypoint
    format: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Variants to measure again, and models to compare them with.

    Attributes:
        models: Models from elsewhere.
        measurement_id: Tells one measurement from another: none is taken from the store.
    """

    models: tuple[ComparisonModel, ...]
    measurement_id: str


class GraphBuilder:
    """A graph in the making."""

    def __init__(self) -> None:
        self._steps: dict[str, Step] = {}
        self._aliases: dict[str, str] = {}
        self._made: dict[str, tuple[StepAddress, str, str]] = {}
        self._by_identity: dict[tuple[str, str], str] = {}
        self._identity: dict[str, str] = {}
        self._outside: dict[str, str] = {}
        self._deliverables: list[Deliverable] = []

    def graph(self) -> Graph:
        """Return everything that was added, in topological order."""
        return Graph(
            topological(self._steps.values()),
            self._aliases,
            tuple(self._deliverables),
            {name: address for name, (address, _, _) in self._made.items()},
        )

    def package_sha256(self, inputs: Mapping[str, OutputRef]) -> str:
        """Digest of how all that goes into a package is made, and under which names."""
        return tagged_sha256(
            "package", [[key, self._identity[r.step]] for key, r in inputs.items()]
        )

    def inputs_of(self, made: OutputRef) -> Mapping[str, OutputRef]:
        """Return the inputs of the step that makes an artifact.

        Args:
            made: An output of a step that was added.
        """
        return self._steps[made.step].inputs

    def delivered(self, recipe: str, name: str) -> Deliverable | None:
        """Return a deliverable that was added; None if there is none of that name."""
        own = (each for each in self._deliverables if (each.recipe, each.name) == (recipe, name))
        return next(own, None)

    def deliver(self, deliverable: Deliverable) -> None:
        """Add what a person opens under out/."""
        self._deliverables.append(deliverable)

    def step(
        self,
        address: StepAddress,
        kind: StepKind,
        params: object,
        location: Location,
        inputs: Mapping[str, OutputRef] | None = None,
        *,
        optional_inputs: Collection[str] = (),
        code: tuple[str, ...] = (),
    ) -> str:
        """Add a step; returns its name, or that of the equal one that was there first.

        Raises:
            UsageError: Another step has the same name.
        """
        name = str(address)
        refs = dict(inputs or {})
        step = Step(name, kind.name, refs, params, location, frozenset(optional_inputs), code)
        identity = tagged_sha256(
            "step",
            [
                kind.name,
                step.params_json,
                [[key, self._identity[ref.step], ref.output] for key, ref in refs.items()],
                *([sorted(optional_inputs)] if optional_inputs else ()),
            ],
        )
        outside = self._outside_of(kind, params, refs.values())
        first = self._by_identity.setdefault((identity, outside), name)
        made = (address, identity, outside)
        if self._made.setdefault(name, made) != made:
            raise UsageError(
                f"two different steps would both be named '{name}'",
                where=str(location),
                fix="rename the variant or the target that gives a step this name",
            )
        if first != name:
            self._aliases[name] = first
            return first
        self._identity[name] = identity
        self._outside[name] = outside
        self._steps[name] = step
        return name

    def _outside_of(self, kind: StepKind, params: object, refs: Iterable[OutputRef]) -> str:
        """Digest of where files outside the project are, upstream too; empty if there are none.

        Steps that are equal but for that are two: what is there may differ.
        """
        folders = [dict(each.outside) for each in kind.entrypoints(params)]
        above = [self._outside[ref.step] for ref in refs]
        return tagged_sha256("outside", [folders, above]) if any((*folders, *above)) else ""


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
        connected: Another component of the recipe -> its scope.
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
    connected: Callable[[str], Scope]
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
