"""Run a model that is ONNX already at several sizes: which axes it really takes, what its outputs are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from onnxbuild.core.axis import sums_of
from onnxbuild.core.errors import StepError
from onnxbuild.core.points import Point
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.export.axis_search import find_rule
from onnxbuild.onnxkit.export.test_sizes import axis_by_axis, probe_points
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session
from onnxbuild.onnxkit.sessions.settings import SessionSettings

AS_WRITTEN = SessionSettings(graph_optimization="disable").judged()
"""The graph as it was made, node by node."""

Observed = tuple[Mapping[str, int], Sequence[tuple[int, ...]]]


def run_at_sizes(
    folder: Path, inputs: Sequence[DummyInput], axes: Sequence[Axis], where: str
) -> list[Observed]:
    """Run a model at the sizes that an export is tried at; see `probe_points`.

    Args:
        folder: Holds the model.
        inputs: As the recipe declares them.
        axes: The recipe's.
        where: `recipe:step`.

    Returns: For each point the sizes, and the shape of each output.

    Raises:
        StepError: It fails somewhere; names the axis and the sizes that it takes where they are known.
    """
    from onnxbuild.onnxkit.export.export_check import probe_feeds

    session = open_session(folder, settings=AS_WRITTEN, where=where)
    shapes = [each.shape for each in inputs]
    sums = sums_of(shapes)

    def run(point: Point) -> list[tuple[int, ...]]:
        found = run_session(session, probe_feeds(inputs, point), where)
        return [array.shape for array in found.values()]

    def runs(point: Point) -> bool:
        try:
            run(point)
        except StepError:
            return False
        return True

    observed: list[Observed] = []
    for point in probe_points(axes, sums):
        try:
            observed.append((point.sizes, run(point)))
        except StepError as error:
            rule = find_rule(axes, shapes, point, lambda sizes: runs(Point("", sizes)))
            if rule is not None:
                what = f"{rule.what}: the model fails at {_shown(point)}: {error.what}"
                raise StepError(what, where=where, fix=rule.fix) from error
            guilty = [
                name for name, one in axis_by_axis(axes, point, sums) if observed and not runs(one)
            ]
            raise StepError(
                f"the model fails at {_shown(point)}: {error.what}", where=where, fix=_fix(guilty)
            ) from error
    return observed


def _fix(guilty: Sequence[str]) -> str:
    if guilty:
        name = guilty[0]
        return (
            f"write the sizes that it takes: `dynamic_axes: {{{name}: {{min: ..., max: ..., "
            f"example: ...}}}}`, or its one size in place of `{name}` in `dummy_inputs`"
        )
    return (
        "write values and sizes that it takes: `low`, `high` or `fill` in `dummy_inputs`, the ranges in "
        "`dynamic_axes`"
    )


def _shown(point: Point) -> str:
    return ", ".join(f"{name}={size}" for name, size in point.sizes.items()) or "its fixed sizes"
