"""The graph of steps and what it delivers; each step has an address, each deliverable a family."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from onnxbuild.core.environment import RUNTIME
from onnxbuild.core.errors import BuildError
from onnxbuild.core.file_names import check_part
from onnxbuild.core.params import to_json
from onnxbuild.core.recipe import Location


@dataclass(frozen=True, slots=True)
class DeliverableFamily:
    """Family of a deliverable.

    Attributes:
        name: In JSON.
        runtime: The distribution that opens the model of such a bundle; empty for what is no bundle.
        is_portable: It is the variant itself, as ONNX for any machine.
        is_page: It is for people: nothing judges it, and no release has it.
    """

    name: str
    runtime: str = ""
    is_portable: bool = False
    is_page: bool = False


VARIANT = DeliverableFamily("variant", RUNTIME, is_portable=True)
ARTIFACT = DeliverableFamily("artifact", RUNTIME)
PROGRAM = DeliverableFamily("program", "torch")
PACKAGE = DeliverableFamily("package")
PAGE = DeliverableFamily("report", is_page=True)
FAMILIES = {each.name: each for each in (VARIANT, ARTIFACT, PROGRAM, PACKAGE, PAGE)}


@dataclass(frozen=True, slots=True)
class StepAddress:
    """Parts of a step's name, as data.

    Names of recipes, variants and targets may hold dashes and dots, and equal a step's: a variant
    may be called `check-fast`, a recipe `session-demo`. A name is for people; code reads this.

    Attributes:
        recipe: The recipe's name.
        step: What it does: `export`, `validate`.
        variant: The variant or format that it belongs to; empty for a step that variants share.
        trial: Of a search over variants, the trial's name; else empty.
        further: Of a bundle that is made of a variant besides its own, that bundle's: `pipeline`; else empty.
        artifact: Of what is made of either ahead of time, or as a package, its format: `ort`, `wheel`; else empty.
        about: The variant that a step measures without being a part of its folder; else empty.
        target: Where it runs, if that is not the recipe's first target; for `provider`, always.
    """

    recipe: str
    step: str
    variant: str = ""
    trial: str = ""
    further: str = ""
    artifact: str = ""
    about: str = ""
    target: str = ""

    @property
    def bundle(self) -> str:
        """Name of the folder that it makes a part of; empty for a step that variants share."""
        return "-".join(filter(None, (self.variant, self.further, self.artifact)))

    @property
    def owner(self) -> str:
        """First part of its name: a bundle, or `VARIANT/TRIAL`; empty for a step that variants share."""
        return f"{self.variant}/{self.trial}" if self.trial else self.bundle

    @property
    def task(self) -> str:
        """Task of the step, wherever it runs: `validate`, `int8-load-times`."""
        return f"{self.about}-{self.step}" if self.about else self.step

    @property
    def task_there(self) -> str:
        """The same, with its target: `validate-cuda`."""
        return f"{self.task}-{self.target}" if self.target else self.task

    @property
    def local(self) -> str:
        """Its name in the recipe: `export`, `int8/validate-cuda`."""
        return f"{self.owner}/{self.task_there}" if self.owner else self.task_there

    def __str__(self) -> str:
        return f"{self.recipe}:{self.local}"


@dataclass(frozen=True, slots=True)
class OutputRef:
    """One output of one step."""

    step: str
    output: str


@dataclass(frozen=True)
class Step:
    """One node.

    Attributes:
        name: Its address as text, `recipe:step` or `recipe:variant/step`.
        kind: A name in the catalog.
        inputs: Input name -> the output it takes.
        params: The kind's parameters dataclass.
        location: Where the recipe asks for it.
        optional_inputs: Inputs that it runs without where the step that makes them is not applicable to
            the model.
        code: Names in the toolchain besides the kind's: of plug-ins whose code it uses, and of the framework
            that a recipe's model needs.
    """

    name: str
    kind: str
    inputs: Mapping[str, OutputRef]
    params: object
    location: Location
    optional_inputs: frozenset[str] = frozenset()
    code: tuple[str, ...] = ()

    @cached_property
    def params_json(self) -> Mapping[str, Any]:
        """The parameters as they enter the key; not to be changed."""
        fields: Mapping[str, Any] = to_json(self.params)
        return fields

    @property
    def occasion(self) -> str:
        """Tells apart measurements: an earlier one is not reused. Empty where it may be."""
        return str(getattr(self.params, "occasion", ""))


@dataclass(frozen=True, slots=True)
class Deliverable:
    """Folder under out/ that a person opens, put together from artifacts.

    Attributes:
        recipe: Recipe name, the folder below out/.
        name: Name of the folder below that: `int8`, `int8-ort`, `torchscript`.
        parts: Output -> file name of a report that is laid next to it, `benchmark.json`; whatever else
            its artifact holds is laid as `benchmark-FILE`. An empty name spreads all of the
            artifact's files in the folder. The bundle comes first.
        family: What it is: one of core.family.
        variant: The variant that it is, or that it is made of; empty for programs, and for what holds several.
        of: Of a package, the name of the deliverable whose bundle it holds; else empty.
        form: Of a package, its format; else empty.
        judged_by: Names of the steps that judge it.
        holds: Of a package of several bundles, (recipe, name) of each.
        measured_by: Target -> names of the steps that measure it there.

    Raises:
        ValueError: A name can't be that of one entry of a folder.
    """

    recipe: str
    name: str
    parts: tuple[tuple[OutputRef, str], ...]
    family: DeliverableFamily = VARIANT
    variant: str = ""
    of: str = ""
    form: str = ""
    judged_by: tuple[str, ...] = ()
    measured_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    holds: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for name in (self.recipe, self.name, *(name for _, name in self.parts if name)):
            check_part(name)

    @property
    def bundle(self) -> OutputRef:
        """Output that the folder is for; reports are laid next to it."""
        return self.parts[0][0]


@dataclass(frozen=True, slots=True)
class ExcludedSteps:
    """Steps that are left out of a graph.

    Attributes:
        steps: Their names, in graph order.
        is_needed: One of them was asked for by name: that is a failure.
    """

    steps: tuple[str, ...]
    is_needed: bool


@dataclass(frozen=True)
class Graph:
    """Steps in topological order, ties in recipe order.

    Attributes:
        steps: Name -> step; iteration order is a valid build order.
        aliases: Name of a step that equals an earlier one -> that one's name.
        deliverables: The folders to lay out, in recipe order.
        addresses: Name of a step, or an alias -> where it stands, in recipe order.
    """

    steps: Mapping[str, Step]
    aliases: Mapping[str, str] = field(default_factory=dict)
    deliverables: tuple[Deliverable, ...] = ()
    addresses: Mapping[str, StepAddress] = field(default_factory=dict)

    def resolve(self, name: str) -> str:
        """The name of the step that stands for `name`."""
        return self.aliases.get(name, name)

    def equals(self, name: str) -> tuple[str, ...]:
        """Return all names of the step that stands for `name`, its own first."""
        step = self.resolve(name)
        return (step, *(alias for alias, each in self.aliases.items() if each == step))

    def left_out_with(self, name: str) -> ExcludedSteps:
        """Return what is left out with a step that is not applicable: all steps that need its outputs."""
        gone: dict[str, None] = {}
        needed = False
        stack = [name]
        while stack:
            each = stack.pop()
            if each in gone:
                continue
            gone[each] = None
            users = self._users.get(each, ())
            needed |= not users
            stack += [user for user, is_optional in users if not is_optional]
        return ExcludedSteps(tuple(each for each in self.steps if each in gone), needed)

    @cached_property
    def _users(self) -> dict[str, list[tuple[str, bool]]]:
        """Step -> (step that uses it, whether all that it uses of it is optional)."""
        users: dict[str, list[tuple[str, bool]]] = {}
        for name, step in self.steps.items():
            is_optional: dict[str, bool] = {}
            for key, ref in step.inputs.items():
                is_optional[ref.step] = (
                    is_optional.get(ref.step, True) and key in step.optional_inputs
                )
            for need, each in is_optional.items():
                users.setdefault(need, []).append((name, each))
        return users

    def waves(self) -> Iterator[tuple[str, ...]]:
        """Yield all steps in waves: each needs only steps of earlier ones."""
        depth: dict[str, int] = {}
        for name, step in self.steps.items():
            depth[name] = max((depth[ref.step] + 1 for ref in step.inputs.values()), default=0)
        waves: dict[int, list[str]] = {}
        for name, number in depth.items():
            waves.setdefault(number, []).append(name)
        yield from (tuple(waves[number]) for number in sorted(waves))

    @cached_property
    def names_by_recipe(self) -> Mapping[str, tuple[str, ...]]:
        """Recipe -> names of its steps, aliases included, in recipe order."""
        found: dict[str, list[str]] = {}
        for name, address in self.addresses.items():
            found.setdefault(address.recipe, []).append(name)
        return {recipe: tuple(names) for recipe, names in found.items()}

    @cached_property
    def deliverables_by_recipe(self) -> Mapping[str, tuple[Deliverable, ...]]:
        """Recipe -> its deliverables."""
        found: dict[str, list[Deliverable]] = {}
        for each in self.deliverables:
            found.setdefault(each.recipe, []).append(each)
        return {recipe: tuple(own) for recipe, own in found.items()}

    def names(self) -> tuple[str, ...]:
        """Return all names that a person may ask for, aliases included."""
        return (*self.steps, *self.aliases)

    def pruned(self, targets: Iterable[str]) -> Graph:
        """Only `targets` and what they need; deliverables whose bundle remains.

        Raises:
            KeyError: A target is not in the graph.
        """
        wanted: set[str] = set()
        stack = [self.resolve(target) for target in targets]
        while stack:
            name = stack.pop()
            if name not in wanted:
                wanted.add(name)
                stack += [ref.step for ref in self.steps[name].inputs.values()]
        kept = []
        for each in self.deliverables:
            if each.parts and each.bundle.step in wanted:
                parts = tuple(part for part in each.parts if part[0].step in wanted)
                kept.append(replace(each, parts=parts))
        return Graph(
            steps={name: step for name, step in self.steps.items() if name in wanted},
            aliases={a: name for a, name in self.aliases.items() if name in wanted},
            deliverables=tuple(kept),
            addresses={
                name: each for name, each in self.addresses.items() if self.resolve(name) in wanted
            },
        )


def topological(steps: Iterable[Step]) -> dict[str, Step]:
    """`steps` ordered so that each follows its inputs; ties keep the order given.

    Raises:
        BuildError: A cycle, named step by step; or an input that no step makes.
    """
    by_name = {step.name: step for step in steps}
    ordered: dict[str, Step] = {}
    for root in by_name:
        path: list[str] = []
        on_path: set[str] = set()
        stack: list[tuple[str, bool]] = [(root, False)]
        while stack:
            name, done = stack.pop()
            if done:
                path.pop()
                on_path.discard(name)
                ordered.setdefault(name, by_name[name])
                continue
            if name in ordered:
                continue
            if name in on_path:
                cycle = [*path[path.index(name) :], name]
                raise BuildError(f"dependency cycle: {' -> '.join(cycle)}")
            if name not in by_name:
                raise BuildError(f"'{path[-1]}' needs '{name}', which no step makes")
            path.append(name)
            on_path.add(name)
            stack.append((name, True))
            needs = [ref.step for ref in by_name[name].inputs.values()]
            stack += [(need, False) for need in reversed(needs)]
    return ordered
