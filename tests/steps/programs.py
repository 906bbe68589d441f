"""Programs other than ONNX of the modules in modules.py: made, run, judged."""

import json
from pathlib import Path

from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.data.feeds import make_feeds
from onnxbuild.onnxkit.programs.artifact_file import read_description
from onnxbuild.onnxkit.programs.programs import open_program
from onnxbuild.steps import reference, torch_export, torchscript, validate_program
from tests.fakes.step_context import run_step

MODULES = Path(__file__).parent / "modules.py"
ROOT = Path(__file__).parents[2]
BATCH = Axis("batch", 1, 8, 3)
X = DummyInput("x", "float32", ("batch", 4))
Y = DummyInput("y", "int64", ("batch", 4), low=0, high=9)


def make(folder, name, kind="torchscript", *, inputs=(X,), outputs=(), axes=(BATCH,), **options):
    model = Entrypoint(f"{MODULES}:load", {"name": name})
    if kind == "torchscript":
        reported = torchscript.TorchScriptOptions(**options)
        params = torchscript.TorchScriptParams(model, inputs, outputs, axes, reported)
        return run_step(torchscript.KIND, params, folder)
    reported = torch_export.TorchExportOptions(**options)
    params = torch_export.TorchExportParams(model, inputs, outputs, axes, reported)
    return run_step(torch_export.KIND, params, folder)


def outputs_of(context, batch=5, inputs=(X,)):
    program = open_program(context.output("program"), threads=1)
    return program.run(make_feeds(inputs, {"batch": batch}, "0"))


def expected(name, batch=5, inputs=(X,)):
    import torch

    from tests.steps import modules

    feeds = make_feeds(inputs, {"batch": batch}, "0")
    with torch.no_grad():
        return modules.load(name).eval()(**{k: torch.from_numpy(v) for k, v in feeds.items()})


def judged(folder, name, context, *, inputs=(X,), axes=(BATCH,), names=(), **tolerances):
    """What validate says of a program, against the module's own outputs."""
    model = Entrypoint(f"{MODULES}:load", {"name": name})
    options = reference.ReferenceOptions()
    params = reference.ReferenceParams(model, inputs, names, axes, None, options)
    _, truth = run_step(reference.KIND, params, folder / "reference")
    program = context.output("program")
    given = VariantTolerances(**(tolerances or {"atol": 1e-5, "rtol": 1e-4}))
    params = validate_program.ValidateProgramParams(read_description(program).format, given)
    inputs = {"program": program, "reference": truth.output("reference")}
    outcome, reported = run_step(validate_program.KIND, params, folder / "validate", inputs)
    return outcome, json.loads((reported.output("report") / "report.json").read_text())
