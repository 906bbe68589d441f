import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.onnxkit.model.inspect import summarize
from onnxbuild.onnxkit.model.model_files import load_model
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.steps import export
from tests.fakes.step_context import run_step

MODULES = Path(__file__).parent / "modules.py"
BATCH = Axis("batch", 1, 8, 3)
X = DummyInput("x", "float32", ("batch", 4))


def params(
    name, *, inputs=(X,), outputs=(), axes=(BATCH,), opset=18, translations=None, **options
):
    return export.ExportParams(
        model=Entrypoint(f"{MODULES}:load", {"name": name}),
        inputs=inputs,
        outputs=outputs,
        axes=axes,
        opset=opset,
        translations=translations,
        options=export.ExportOptions(**options),
    )


def run(folder, name, **options):
    return run_step(export.KIND, params(name, **options), folder)


def refused(folder, name, **options):
    with pytest.raises(StepError) as caught:
        run(folder, name, **options)
    assert not list((folder / "out").rglob("*.onnx"))
    return caught.value


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_a_model_is_exported_with_the_recipes_names_and_axes(tmp_path, exporter):
    outcome, context = run(tmp_path, "Nested", outputs=("z", "a.1.0"), exporter=exporter)

    assert outcome.metrics["exporter"] == exporter
    model = load_model(context.output("model"))
    found = summarize(model)
    assert found["inputs"] == [{"name": "x", "dtype": "float32", "shape": ["batch", 4]}]
    assert [v["name"] for v in found["outputs"]] == ["z", "a.1.0"]
    assert [v["shape"] for v in found["outputs"]] == [["batch", 4], ["batch", 4]]
    assert {t.name for t in model.graph.initializer} >= {"linear.weight", "linear.bias"}
    assert found["opsets"] == {"ai.onnx": 18}
    x = np.ones((5, 4), np.float32)
    _, following = open_session(context.output("model")).run(None, {"x": x})
    assert (following == 2).all()


def test_auto_falls_back_to_torchscript_and_says_why(tmp_path):
    outcome, _ = run(tmp_path, "Nested", opset=13)
    assert outcome.metrics["exporter"] == "torchscript"
    (note,) = outcome.notes
    assert note.startswith(
        "auto kept torchscript; dynamo: the dynamo exporter needs opset 14 for "
    )


def test_auto_takes_the_exporter_that_uses_symbolic(tmp_path):
    function = "SineByHand"
    outcome, context = run(tmp_path, "HasSymbolic")
    assert outcome.metrics["exporter"] == "torchscript"
    assert outcome.notes == (
        f"auto tried torchscript first, for `symbolic` of {function}; dynamo does not use it",
    )
    assert "Sin" in summarize(load_model(context.output("model")))["operators"]


@pytest.mark.slow
def test_a_symbolic_that_computes_something_else_is_refused_and_dynamo_kept(tmp_path):
    outcome, _ = run(tmp_path, "HasWrongSymbolic")
    assert outcome.metrics["exporter"] == "dynamo"
    assert outcome.notes[0].startswith("`symbolic` of NotSwish is not used")
    assert outcome.notes[1].startswith("auto kept dynamo; torchscript: at batch=3 output")


def test_a_module_that_its_first_call_sets_is_refused(tmp_path):
    error = refused(tmp_path, "SetsItself")
    assert error.what.endswith(
        "depends on what forward was called with first, when it sets 'mean', 'is_set'"
    )
    assert "call the module once on your own data" in error.fix


@pytest.mark.slow
def test_an_axis_that_the_exporter_specializes_is_named_with_torchs_own_words(tmp_path):
    error = refused(tmp_path, "BranchesOnSize", exporter="dynamo")
    assert error.what.startswith(
        "the dynamo exporter's graph is not as declared: input 'x': axis 'batch' (dimension 0) is "
        "fixed at 3 in the graph (torch: You marked batch as dynamic but your code specialized it "
        "to be a constant (3)); tests/steps/modules.py:"
    )
    assert error.what.endswith(" was exported for one size alone (Add)")
    assert "try `export: {exporter: torchscript}`" in error.fix


@pytest.mark.parametrize(
    ("name", "end"),
    [("BranchesOnSize", "6"), ("ScalesBySize", " was exported for one size alone (Mul)")],
)
def test_an_axis_that_the_tracer_bakes_in_is_found_by_running_other_sizes(tmp_path, name, end):
    error = refused(tmp_path, name, exporter="torchscript")
    assert error.what.startswith("axis 'batch' is baked into the graph: at batch=4 ")
    sizes = (
        "; of the sizes of 'batch' that were tried, the graph is right at 3 and wrong at 1, 2, "
    )
    assert f"{sizes}4, 5, 6" in error.what
    assert error.what.endswith(end)
    assert (
        "or keep a size that is right: `dynamic_axes: {batch: {min: 3, max: 3, example: 3}}`"
        in (error.fix)
    )
    outcome, _ = run(
        tmp_path / "fixed", name, exporter="torchscript", axes=(Axis("batch", 3, 3, 3),)
    )
    assert outcome.metrics["exporter"] == "torchscript"


PAIR = (DummyInput("x", "float32", ("batch", "rows", 4)),)
PAIR_AXES = (Axis("batch", 1, 9, 2), Axis("rows", 1, 20, 5))


@pytest.mark.slow
def test_a_choice_by_two_sizes_at_once_is_found_by_what_torch_does_not_answer_for(tmp_path):
    error = refused(tmp_path, "BranchesOnTwoSizes", inputs=PAIR, axes=PAIR_AXES)
    assert error.what.startswith(
        "forward chooses by sizes, and the graph has one choice: at batch=7, rows=20 output "
    )
    assert error.fix.endswith("or narrow `dynamic_axes: {batch: {max: 6}}`")
    axes = (Axis("batch", 1, 6, 2), PAIR_AXES[1])
    outcome, _ = run(tmp_path / "narrow", "BranchesOnTwoSizes", inputs=PAIR, axes=axes)
    assert outcome.metrics["exporter"] == "dynamo"


@pytest.mark.slow
def test_a_branch_taken_by_value_is_never_frozen_in_silence(tmp_path):
    error = refused(tmp_path, "BranchesOnValue")
    assert error.what.startswith("forward takes values out of a tensor by `if` or `while`")


@pytest.mark.slow
def test_an_operator_that_no_exporter_knows_is_named(tmp_path):
    error = refused(tmp_path, "Bessel")
    assert "can't translate the operator 'prims.bessel_j0' to opset 18" in error.what
    assert "can't translate the operator 'aten::special_bessel_j0' to opset 18" in error.what


@pytest.mark.slow
def test_a_translation_that_computes_something_else_is_refused(tmp_path):
    translations = Entrypoint(f"{MODULES}:cosine_for_bessel")
    error = refused(tmp_path, "Bessel", translations=translations, exporter="dynamo")
    assert "output 'output_0' differs from PyTorch" in error.what


@pytest.mark.slow
def test_a_translation_is_used(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "import torch\n"
        "class Half(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return torch.ops.aten.special_bessel_j0(x) * 0 + x\n"
        "def load():\n    return Half()\n"
        "def table():\n"
        "    from onnxscript import opset18 as op\n"
        "    def bessel_j0(x):\n        return op.Cos(x)\n"
        "    return {torch.ops.prims.bessel_j0.default: bessel_j0}\n"
    )
    given = params("-", translations=Entrypoint(f"{file}:table"))
    given = export.ExportParams(
        Entrypoint(f"{file}:load"), given.inputs, (), given.axes, 18, given.translations,
        given.options,
    )  # fmt: skip
    outcome, context = run_step(export.KIND, given, tmp_path)
    assert outcome.metrics["exporter"] == "dynamo"
    assert "Cos" in summarize(load_model(context.output("model")))["operators"]


def test_the_users_samples_are_compared_before_a_graph_is_kept(tmp_path):
    given = params("HasSymbolicWrongForSamples", exporter="torchscript")
    run_step(export.KIND, given, tmp_path / "dummies")
    samples = Entrypoint(f"{MODULES}:samples", {"rows": [3, 5, 20_000], "size": 2})
    given = dataclasses.replace(given, samples=samples, max_samples=3)
    with pytest.raises(StepError) as caught:
        run_step(export.KIND, given, tmp_path / "samples")
    assert caught.value.what.startswith(
        f"on sample-02 of {samples.target} output 'output_0' differs"
    )
    assert caught.value.what.endswith("10000, PyTorch 20000")


@pytest.mark.slow
def test_an_opset_that_the_exporter_cant_reach_is_an_error_with_the_least(tmp_path):
    error = refused(tmp_path, "Nested", opset=13, exporter="dynamo")
    assert error.what == (
        "the dynamo exporter needs opset 14 for the operator 'Add'; the recipe asks for opset 13"
    )
    assert error.fix == "write `opset: 14`"
    outcome, _ = run(tmp_path / "typed", "Nested", opset=14, exporter="dynamo")
    assert outcome.metrics["opset"] == 14
    outcome, context = run(tmp_path / "other", "Nested", opset=13)
    assert outcome.metrics["exporter"] == "torchscript"
    assert summarize(load_model(context.output("model")))["opsets"] == {"ai.onnx": 13}


def test_names_that_do_not_fit_are_refused_before_anything_is_exported(tmp_path):
    assert "names 'a', which is no key" in refused(tmp_path, "Nested", outputs=("a",)).what
    assert "'x', which is an input already" in (
        refused(tmp_path, "Nested", outputs=("a", "x")).what
    )
    ids = DummyInput("ids", "float32", ("batch", 4))
    assert "'ids' is not a parameter of Nested.forward" in (
        refused(tmp_path, "Nested", inputs=(ids,)).what
    )


@pytest.mark.slow
def test_integers_bools_infinities_and_derived_sizes_are_no_obstacle(tmp_path):
    outcome, _ = run(tmp_path, "ClassIds")
    assert outcome.metrics["exporter"] == "dynamo"


@pytest.mark.slow
def test_fixed_shapes_and_narrow_axes_are_exported_as_declared(tmp_path):
    x = DummyInput("x", "float32", (1, 4))
    _, context = run(tmp_path, "Nested", inputs=(x,), axes=())
    assert summarize(load_model(context.output("model")))["inputs"][0]["shape"] == [1, 4]


@pytest.mark.slow
def test_weights_go_outside_on_request(tmp_path):
    file = tmp_path / "wide.py"
    file.write_text("import torch\ndef load():\n    return torch.nn.Linear(64, 64)\n")
    x = DummyInput("input", "float32", ("batch", 64))
    given = export.ExportParams(
        Entrypoint(f"{file}:load"), (x,), (), (BATCH,), 18, None,
        export.ExportOptions(exporter="auto", external_data="always"),
    )  # fmt: skip
    outcome, context = run_step(export.KIND, given, tmp_path)
    files = {path.name: path.stat().st_size for path in context.output("model").iterdir()}
    assert files["model.onnx.data"] == 64 * 64 * 4
    assert outcome.metrics["size_bytes"] == sum(files.values())
    onnx.checker.check_model(str(context.output("model") / "model.onnx"), full_check=True)


SCRIPT = """
import hashlib, sys
from pathlib import Path
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.steps import export
from tests.fakes.step_context import run_step

for exporter in ("dynamo", "torchscript"):
    given = export.ExportParams(
        Entrypoint(str(Path("mine.py").resolve()) + ":load"),
        (DummyInput("x", "float32", ("batch", 4)), DummyInput("y", "float32", ("batch", 4))),
        (), (Axis("batch", 1, 8, 3),), 18, None, export.ExportOptions(exporter=exporter),
    )
    _, context = run_step(export.KIND, given, Path(exporter))
    for path in sorted(Path(exporter, "out").rglob("*.*")):
        print(exporter, path.name, hashlib.sha256(path.read_bytes()).hexdigest())
"""


def digests_of_a_fresh_process(folder, seed, source):
    folder.mkdir(parents=True)
    (folder / "mine.py").write_text(source)
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-B", "-c", SCRIPT],
        cwd=folder,
        env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": root, "PATH": os.defpath},
        capture_output=True,
        text=True,
        check=True,
    )
    return [line for line in done.stdout.splitlines() if line.startswith(("dynamo", "torchs"))]


@pytest.mark.slow
def test_bytes_are_the_same_in_other_folders_under_other_hash_seeds_and_after_comments(tmp_path):
    source = MODULES.read_text() + "\ndef load():\n    return TwoInputs()\n"
    edited = "# a comment\n\n" + source.replace(
        "return self.linear(x)", "# why\n        " * 2 + "return self.linear(x)"
    )
    first = digests_of_a_fresh_process(tmp_path / "a", 1, source)
    second = digests_of_a_fresh_process(tmp_path / "b" / "deep er", 2, edited)
    assert len(first) == 4
    assert first == second


@pytest.mark.slow
def test_outputs_without_axes_are_exported_whatever_their_dtype(tmp_path):
    outcome, context = run(tmp_path, "Scalars", outputs=("id", "any", "sum"), exporter="dynamo")
    assert outcome.metrics["exporter"] == "dynamo"
    found = summarize(load_model(context.output("model")))["outputs"]
    assert [(v["dtype"], v["shape"]) for v in found] == [
        ("int64", []), ("bool", []), ("float32", []),
    ]  # fmt: skip
