"""Check a model: well-formed, shapes inferable, exactly the declared axes dynamic; and sum it up."""

from dataclasses import dataclass

from onnxbuild.core.params import to_json
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.model.inspect import summarize
from onnxbuild.onnxkit.model.interface import interface_faults, unused_inputs
from onnxbuild.onnxkit.model.model_files import file_bytes, load_model
from onnxbuild.onnxkit.model.opsets import checker_faults
from onnxbuild.onnxkit.reports import write_report


@dataclass(frozen=True, slots=True)
class CheckParams:
    """Parameters of a check: what the graph must look like.

    Attributes:
        opset: The exact default-domain opset, or None where a later step may have raised it.
    """

    inputs: tuple[DummyInput, ...]
    outputs: tuple[str, ...]
    axes: tuple[Axis, ...]
    opset: int | None


def run(context: StepContext) -> Outcome:
    """Write report.json; breaches are findings.

    Raises:
        StepError: The input is no model at all.
    """
    params: CheckParams = context.params
    folder = context.input("model")
    model = load_model(folder, weights="left")
    findings = (
        *interface_faults(model, params.inputs, params.outputs, params.opset),
        *checker_faults(folder, context.scratch),
    )
    summary = {**summarize(model), "size_bytes": file_bytes(folder)}
    report = {
        "passed": not findings,
        "findings": to_json(findings),
        "unused_inputs": unused_inputs(model),
        "dynamic_axes": {axis.name: [axis.min, axis.max] for axis in params.axes},
        "summary": summary,
    }
    write_report(context.output("report"), report)
    metrics = {name: summary[name] for name in ("nodes", "parameters", "size_bytes", "ir_version")}
    return Outcome(metrics, findings)


KIND = StepKind(
    name="check",
    version=3,
    params=CheckParams,
    inputs=("model",),
    outputs={"report": "report"},
    toolchain=("onnx", "numpy"),
    run=run,
)
