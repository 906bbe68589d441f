"""Baseline of a benchmark: a recipe's model as its user runs it, in its own framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onnxbuild.core.environment import Environment
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.target import Target

if TYPE_CHECKING:
    from onnxbuild.core.step import StepContext
    from onnxbuild.onnxkit.benchmark.candidate import Bind

INPUT = "baseline"
"""The step's input that holds the model, of a baseline that is an ONNX file."""


PYTORCH, KERAS = "pytorch", "keras"
"""Runners of modules."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Baseline of a frontend's models, as a parameter of the step that measures.

    Attributes:
        runner: A name in `baselines.RUNNERS`, or `package.module:NAME`, a BaselineRunner of a plug-in; empty
            for none.
        absent: Reason why there is none, if `runner` is empty.
        outputs: Names of the outputs that it computes, in the recipe's order; empty for all.
        rename: The model's names of inputs and outputs -> the recipe's.
        environment: Environment that its framework is installed in; None for onnxbuild's own.
        toolchain: Packages that it uses, as in a step kind's `toolchain`.
        model: The model to run, of a baseline that is an ONNX file: the step's input `baseline`.
    """

    runner: str = ""
    absent: str = ""
    outputs: tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    environment: Environment | None = field(default=None, metadata={"local": True})
    toolchain: tuple[str, ...] = field(default=(), metadata={"local": True})
    model: OutputRef | None = field(default=None, metadata={"local": True})


NO_BASELINE = Baseline(absent="not asked for")


@dataclass(frozen=True, slots=True)
class OnTarget:
    """A baseline on one target, as a step takes it.

    Attributes:
        baseline: The baseline; it has no runner if it is not measured there.
        environment: Environment that its framework is installed in; None for onnxbuild's own.
        inputs: The model, of a baseline that is an ONNX file.
        toolchain: Packages of the step's toolchain, in addition to its kind's.
    """

    baseline: Baseline
    environment: Environment | None = None
    inputs: Mapping[str, OutputRef] = field(default_factory=dict)
    toolchain: tuple[str, ...] = ()


def on_target(baseline: Baseline, target: Target) -> OnTarget:
    """Return a baseline as it is measured on a target."""
    if baseline.environment is not None and target.environment is not None:
        why = (
            f"its framework needs the {baseline.environment}, and the target '{target.name}' has an "
            "environment of its own: a step starts one"
        )
        return OnTarget(Baseline(absent=why))
    if not baseline.runner:
        return OnTarget(baseline)
    inputs = {} if baseline.model is None else {INPUT: baseline.model}
    return OnTarget(baseline, baseline.environment, inputs, baseline.toolchain)


@dataclass(frozen=True, slots=True)
class Original:
    """A recipe's model, for a runner.

    Attributes:
        context: The step's.
        params: The step's, with `model`, `inputs`, `outputs` and `axes`.
        threads: Number of threads that it may use.
        environment: Environment that its framework is installed in; None for this process.
    """

    context: StepContext
    params: OriginalParams
    threads: int
    environment: Environment | None = None

    @property
    def model(self) -> Entrypoint:
        """The model's files, or the callable that returns it."""
        return self.params.model

    @property
    def inputs(self) -> tuple[DummyInput, ...]:
        """The recipe's inputs, which the model takes."""
        return self.params.inputs


@dataclass(frozen=True, slots=True)
class OriginalParams:
    """A model and what it is called with, as `converters.requests` reads them.

    Attributes:
        model: The model's files, or the callable.
        inputs: Inputs, as the recipe declares them.
        outputs: Names in order; empty takes all.
        axes: The recipe's.
        rename: The model's names of inputs and outputs -> the recipe's.
    """

    model: Entrypoint
    inputs: tuple[DummyInput, ...]
    outputs: tuple[str, ...]
    axes: tuple[Axis, ...]
    rename: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class BaselineRunner:
    """A framework that runs a model as its users do.

    Attributes:
        name: Its row in reports.
        title: Its name for people: `vs TITLE`.
        how: Definition of one run, in a sentence for the report.
        opener: Returns a function that loads the model.
    """

    name: str
    title: str
    how: str
    opener: Callable[[Original], Callable[[], Bind]]


@dataclass(frozen=True, slots=True)
class ShownBaseline:
    """Baseline as a report shows it.

    Attributes:
        name: Its row; empty if it was not measured.
        title: Its name for people; empty likewise.
        absent: Reason why it was not measured; empty if it was, or if nobody asked for it.
    """

    name: str = ""
    title: str = ""
    absent: str = ""

    @property
    def heading(self) -> str:
        """Heading of a column with ratios to it."""
        return f"vs {self.title or 'baseline'}"


BEFORE = ShownBaseline(PYTORCH, "PyTorch")
"""Baseline of reports that name none: they were made when PyTorch was the only one."""


def baseline_of(report: Mapping[str, Any]) -> ShownBaseline:
    """Return the baseline of a report, or of what a step that measures says of its own."""
    said = report.get("baseline")
    if said is None:
        return BEFORE
    return ShownBaseline(
        str(said.get("name", "")), str(said.get("title", "")), str(said.get("absent", ""))
    )


def one_heading(found: Sequence[ShownBaseline]) -> str:
    """Return the heading of a column that has ratios to several baselines."""
    titles = {each.title for each in found if each.title}
    if not found:
        return BEFORE.heading
    return f"vs {titles.pop()}" if len(titles) == 1 else "vs baseline"
