"""`onnxbuild run` on a recipe with formats other than ONNX, and on one without ONNX."""

import json
import subprocess
import sys


def without_onnx(project, formats):
    project.edit("tiny.yaml", "quantization: {fp32: none}\n", f"formats: {formats}\n")


def test_a_recipe_without_onnx_is_built_judged_delivered_and_up_to_date(project):
    without_onnx(project, "[torchscript]")
    first = project.run()
    assert first.code == 0, first.out + first.err
    assert first.ran == [
        "benchmark", "reference", "torchscript/convert", "torchscript/package",
        "torchscript/validate",
    ]  # fmt: skip
    row = next(line for line in first.out.splitlines() if line.startswith("tiny "))
    assert row.split()[1] == "torchscript"
    assert " ms" in row
    out = project.folder / "artifacts/out/tiny/torchscript"
    measured = json.loads((out / "benchmark.json").read_text())
    assert list(measured["models"]) == ["pytorch", "torchscript"]
    assert measured["points"][0]["results"]["torchscript"]["speedup"] > 0
    subprocess.run(["sha256sum", "-c", "SHA256SUMS", "--quiet"], cwd=out, check=True)
    printed = subprocess.run(
        [sys.executable, "load.py"], cwd=out, capture_output=True, text=True, check=True
    ).stdout
    assert printed.startswith("logits float32 [2, 2]\n")

    assert project.run().ran == []
    project.edit("models/helper.py", "ReLU", "GELU")
    assert project.run().ran == first.ran


def test_a_size_baked_into_a_trace_fails_the_run_with_a_gates_code(project):
    without_onnx(project, "[torchscript]")
    project.edit(
        "models/tiny.py",
        "    return torch.nn.Sequential(\n        torch.nn.Linear(4, width), "
        "activation(), torch.nn.Linear(width, 2)\n    )",
        "    class Mean(torch.nn.Module):\n        def forward(self, input):\n"
        "            return input[:, :2].sum(0) / float(len(input))\n\n    return Mean()",
    )
    found = project.run("--json")
    assert found.code == 3, found.out + found.err
    reported = [json.loads(line) for line in found.out.splitlines()]
    assert "method: script" in json.dumps(reported)
    assert not (project.folder / "artifacts/out/tiny/torchscript/model.pt").exists()


def test_verbs_that_are_about_onnx_say_so(project):
    without_onnx(project, "[torchscript]")
    for verb in ("diagnose", "inspect"):
        found = project(verb, "tiny:torchscript")
        assert found.code == 2, found.out + found.err
        assert "'torchscript' is not an ONNX variant" in found.out + found.err
