"""Run a web package's own test in Node, on the WebAssembly that browsers run, and judge what it gives."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.environment import NPM, Environment
from onnxbuild.core.errors import StepError
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.packages.own_test import NOT_HERE
from onnxbuild.onnxkit.packages.tested import outcome_of, refuse_damage, skipped
from onnxbuild.onnxkit.web.content import MOST_POINTS
from onnxbuild.onnxkit.web.lacking import is_of_operators, lacking_operators
from onnxbuild.onnxkit.web.node_test import run_node_test
from onnxbuild.onnxkit.web.runtime import PACKAGE, VERSION

_FIX = "set `packages: {web: {tolerances: ...}}`, or run `node test.mjs` in the package's folder"
_LEAVE_OUT = "take the variant out of `packages: {variants: [...]}`"


@dataclass(frozen=True, slots=True)
class RunWebParams:
    """Parameters of a package's run.

    Attributes:
        subject: What is judged, for messages.
        tolerances: The package's.
        environment: Where Node is.
    """

    subject: str
    tolerances: VariantTolerances
    environment: Environment


def run(context: StepContext) -> Outcome:
    """Write report.json; an output out of its tolerance is a finding. Without Node it is skipped.

    Raises:
        StepError: A file of the package is not the one that was packaged, the runtime lacks operators of the
            model, or the test dies.
    """
    params: RunWebParams = context.params
    package, node = refuse_damage(context), params.environment.interpreter
    if not node:
        reason = "there is no Node here; install it (`apt-get install nodejs npm`) and run again"
        return skipped(context, params.subject, reason)
    test = run_node_test(package, node, context.scratch)
    if test.code == NOT_HERE:
        raise _not_loaded(context, test.said)
    return outcome_of(
        test,
        context,
        params.tolerances,
        subject=params.subject,
        command="node test.mjs",
        fix=_FIX,
        most=MOST_POINTS,
    )


def _not_loaded(context: StepContext, said: str) -> StepError:
    """The error of a model that the runtime refuses; with all operators that it lacks."""
    params: RunWebParams = context.params
    lacking: tuple[str, ...] = ()
    if is_of_operators(said):
        node = params.environment.interpreter
        lacking = lacking_operators(context.input("package"), node, context.scratch)
    if not lacking:
        what = f"{params.subject} can't be loaded: {said}"
        return StepError(what, where=context.where, fix=_LEAVE_OUT)
    what = f"{PACKAGE} {VERSION} lacks operators of {params.subject}: {', '.join(lacking)}"
    return StepError(what, where=context.where, fix=f"package another variant, and {_LEAVE_OUT}")


KIND = StepKind(
    name="run-web",
    version=4,
    params=RunWebParams,
    inputs=("package", "reference"),
    outputs={"report": "report"},
    toolchain=("numpy", "onnx", NPM),
    run=run,
)
