"""TorchScript and torch.export: made, read again, judged."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.data.feeds import make_feeds
from onnxbuild.onnxkit.programs.artifact_file import read_description
from onnxbuild.onnxkit.programs.programs import open_program
from tests.steps.programs import ROOT, X, Y, expected, judged, make, outputs_of

FORMS = [
    ("torchscript", {"method": "trace"}),
    ("torchscript", {"method": "trace", "freeze": False}),
    ("torchscript", {"method": "script"}),
    ("torchscript", {"method": "script", "freeze": False}),
    ("torch-export", {}),
    ("torch-export", {"strict": True}),
]


@pytest.mark.parametrize(("kind", "options"), FORMS, ids=str)
def test_a_program_gives_what_the_module_gives_at_other_sizes(tmp_path, kind, options):
    outcome, context = make(
        tmp_path, "TwoInputs", kind, inputs=(Y, X), outputs=("sum",), **options
    )

    found = outputs_of(context, inputs=(Y, X))
    assert list(found) == ["sum"]
    np.testing.assert_array_equal(found["sum"], expected("TwoInputs", inputs=(Y, X)).numpy())
    description = read_description(context.output("program"))
    assert [each.name for each in description.inputs] == ["y", "x"]
    assert description.inputs[1].shape == ("batch", 4)
    assert outcome.metrics["size_bytes"] > 0


def test_nested_outputs_are_flattened_under_the_recipes_names(tmp_path):
    _, context = make(tmp_path, "Nested", "torchscript", outputs=("a.1.0", "z"))

    found = outputs_of(context)
    want = expected("Nested")
    np.testing.assert_array_equal(found["z"], want["z"].numpy())
    np.testing.assert_array_equal(found["a.1.0"], want["a"][1][0].numpy())


def test_a_script_keeps_what_a_trace_freezes(tmp_path):
    traced, trace = make(tmp_path / "trace", "BranchesOnValue")
    _, script = make(tmp_path / "script", "BranchesOnValue", method="script")

    (remark,) = traced.notes
    assert remark.startswith("traced as a constant at modules.py:")
    feeds = [{"x": np.full((5, 4), value, np.float32)} for value in (1.0, -1.0)]
    tracing, scripting = (
        open_program(each.output("program"), threads=1) for each in (trace, script)
    )
    up, down = (tracing.run(each)["output_0"] for each in feeds)
    kept_up, kept_down = (scripting.run(each)["output_0"] for each in feeds)
    np.testing.assert_array_equal(kept_down, feeds[1]["x"])
    assert (kept_up != feeds[0]["x"]).any()
    assert (up == feeds[0]["x"]).all() == (down == feeds[1]["x"]).all()  # one branch for both


def test_what_script_can_not_compile_is_reported_with_the_other_method(tmp_path):
    with pytest.raises(StepError) as caught:
        make(tmp_path, "HasSymbolic", method="script")
    assert caught.value.what.startswith("torch.jit.script failed: ")
    assert "method: trace" in caught.value.fix


def test_an_axis_that_export_can_not_keep_dynamic_is_reported_by_torchs_own_line(tmp_path):
    with pytest.raises(StepError) as caught:
        make(tmp_path, "BranchesOnSize", "torch-export")
    assert "can't keep the declared axes dynamic" in caught.value.what
    assert "batch" in caught.value.what
    assert "x.shape[0]" in caught.value.fix


def test_a_program_that_fails_at_a_point_is_a_finding_with_pytorchs_own_line(tmp_path):
    _, context = make(tmp_path, "AtMostFive", axes=(Axis("batch", 1, 5, 3),))

    outcome, _ = judged(tmp_path, "AtMostFive", context, axes=(Axis("batch", 1, 5, 3),))
    assert outcome.findings == ()
    narrow = DummyInput("x", "float32", ("batch", 3))
    model = context.output("program")
    program = open_program(model, threads=1)
    with pytest.raises(RuntimeError, match="5"):
        program.run(make_feeds((narrow,), {"batch": 6}, "0"))


SCRIPT = """
import sys
from pathlib import Path
from tests.steps.programs import X, Y, make
from tests.steps.test_torch_formats import FORMS
for n, (kind, options) in enumerate(FORMS):
    make(Path.cwd() / str(n), "Embeds", kind, inputs=(X, Y), **options)
"""


@pytest.mark.slow
def test_equal_modules_give_equal_bytes_in_another_process_folder_and_hash_seed(tmp_path):
    running = []
    for seed, name in (("0", "here"), ("7", "somewhere/else")):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        environment = {
            **os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "2",
        }  # fmt: skip
        command = [sys.executable, "-c", SCRIPT]
        running.append((folder, subprocess.Popen(command, cwd=folder, env=environment)))
    found = []
    for folder, process in running:
        assert process.wait(timeout=300) == 0
        files = sorted(folder.rglob("out/program/*"))
        found.append(
            {
                path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest()
                for path in files
            }
        )
        for path in files:
            assert str(tmp_path).encode() not in path.read_bytes()
    assert len(found[0]) == 2 * len(FORMS)
    assert found[0] == found[1]
