"""Whether an input that is another component's output takes what that component gives: type, rank, sizes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from onnxbuild.core.axis import Axis
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.params import to_json
from onnxbuild.core.step import Finding, Outcome, StepContext, StepKind
from onnxbuild.expansion.addresses import shared
from onnxbuild.expansion.feature import Feature, Subject
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.model.shapes import unknown_axis

_SOURCE = "source/"


@dataclass(frozen=True, slots=True)
class Connected:
    """An input, and the component and output that it is."""

    input: str
    component: str
    output: str


@dataclass(frozen=True, slots=True)
class ConnectionsParams:
    """Parameters of the check.

    Attributes:
        connections: Of one component.
        axes: That component's, whose ranges decide which fixed sizes fit.
    """

    connections: tuple[Connected, ...]
    axes: tuple[Axis, ...]


def run(context: StepContext) -> Outcome:
    """Compare each input of `model` with the output that it is; breaches are findings."""
    from onnxbuild.onnxkit.model.inspect import describe_value, inputs_of
    from onnxbuild.onnxkit.model.model_files import load_model
    from onnxbuild.onnxkit.reports import write_report

    params: ConnectionsParams = context.params
    axes = {axis.name: axis for axis in params.axes}
    model = load_model(context.input("model"), weights="left")
    taken = {each.name: describe_value(each) for each in inputs_of(model.graph)}
    findings: list[Finding] = []
    for each in params.connections:
        source = load_model(context.input(f"{_SOURCE}{each.component}"), weights="left")
        given = {value.name: describe_value(value) for value in source.graph.output}
        if each.output in given and each.input in taken:  # else `check` has the finding
            findings += _misfit(each, given[each.output], taken[each.input], axes)
    report = {"passed": not findings, "findings": to_json(tuple(findings))}
    write_report(context.output("report"), report)
    return Outcome({"connections": len(params.connections)}, tuple(findings))


def _misfit(
    each: Connected, given: Mapping[str, Any], taken: Mapping[str, Any], axes: Mapping[str, Axis]
) -> Iterator[Finding]:
    shape = _known(each.output, given["shape"], taken["shape"])
    if given["dtype"] == taken["dtype"] and _fits(shape, taken["shape"], axes):
        return
    yield Finding(
        f"'{each.output}' of component '{each.component}' is {_words(given)}; the input '{each.input}' takes "
        f"{_words(taken)}",
        where=f"input '{each.input}'",
        fix="declare the input as that output is, or change the model",
    )


def _known(output: str, given: list[Any] | None, taken: list[Any] | None) -> list[Any] | None:
    """Return an output's shape with the input's sizes where the graph does not say its own; a session refuses others."""
    if given is None or taken is None or len(given) != len(taken):
        return given
    return [
        other if size == unknown_axis(output, axis) else size
        for axis, (size, other) in enumerate(zip(given, taken, strict=True))
    ]


def _fits(given: list[Any] | None, taken: list[Any] | None, axes: Mapping[str, Axis]) -> bool:
    """Return whether a shape takes all of another; ranges of dynamic axes on both sides are checked with the recipe."""
    if given is None or taken is None:
        return given is taken
    return len(given) == len(taken) and all(
        size == other
        or (isinstance(other, str) and (isinstance(size, str) or _takes(axes, other, size)))
        for size, other in zip(given, taken, strict=True)
    )


def _takes(axes: Mapping[str, Axis], name: str, size: int) -> bool:
    return name not in axes or axes[name].takes(size)


def _words(value: Mapping[str, Any]) -> str:
    return f"{value['dtype']} [{', '.join(map(str, value['shape'] or ()))}]"


KIND = StepKind(
    name="connections",
    version=2,
    params=ConnectionsParams,
    inputs=("model", f"{_SOURCE}*"),
    outputs={"report": "report"},
    toolchain=("onnx", "numpy"),
    run=run,
)


def _reports(scope: Scope, _: Subject) -> Mapping[str, OutputRef]:
    """Add the check, once for all variants: of the models as they were exported."""
    recipe = scope.recipe
    if not recipe.connections:
        return {}
    connections = tuple(Connected(c.input, c.component, c.output) for c in recipe.connections)
    sources = {
        f"{_SOURCE}{each.component}": scope.connected(each.component).source().model
        for each in recipe.connections
    }
    step = scope.step(
        shared(recipe, KIND.name),
        KIND,
        ConnectionsParams(connections, recipe.axes),
        {"model": scope.source().model, **sources},
        at=recipe.connections[0].location,
    )
    return {f"gate/{KIND.name}": OutputRef(step, "report")}


FEATURE = Feature(
    name=KIND.name,
    kinds=(KIND,),
    reports=_reports,
    released_if_shared=(KIND.name,),
    shown={KIND.name: "plain"},
)
