import json
from pathlib import Path

import onnxruntime
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.target import CPU_TARGET, Link, Target
from onnxbuild.steps.provider import KIND, ProviderParams
from tests.fakes.step_context import run_step

CUDA = Target("cuda", (Link("cuda", {"device_id": "0"}),))
GPU_HERE = Path("/dev/nvidia0").exists() and (
    "CUDAExecutionProvider" in onnxruntime.get_available_providers()
)


def looked(folder, target, require="none"):
    outcome, context = run_step(KIND, ProviderParams(target, require), folder)
    return outcome, json.loads((context.output("report") / "report.json").read_text())


def test_what_loads_is_reported_without_a_word(tmp_path):
    outcome, report = looked(tmp_path, CPU_TARGET, "one")
    assert outcome.notes == ()
    assert report == {"target": "cpu", "loads": ["cpu"], "absent": "", "faults": {}}


def test_what_is_not_in_the_package_is_skipped_with_one_line(tmp_path):
    outcome, report = looked(tmp_path, Target("npu", (Link("qnn"),)))
    assert report["loads"] == []
    assert report["absent"].startswith("does not load: QNNExecutionProvider is not in the install")
    (note,) = outcome.notes
    assert note.startswith(
        "target 'npu' is skipped: it does not load: QNNExecutionProvider is not"
    )
    assert report["faults"]["qnn"][0]["cause"] == "package"


def test_what_is_required_breaks_the_step_with_a_fix(tmp_path):
    with pytest.raises(StepError) as caught:
        looked(tmp_path, Target("npu", (Link("qnn"),)), "all")
    assert caught.value.what.startswith("target 'npu' is required, and does not load: QNNExec")
    assert "`npu: {require: false}`" in caught.value.fix


def test_a_chain_is_there_when_one_of_it_loads_and_whole_only_where_all_must(tmp_path):
    chain = Target("any", (Link("qnn"), Link("cpu")))
    outcome, report = looked(tmp_path / "one", chain, "one")
    assert (report["loads"], report["absent"]) == (["cpu"], "")
    assert outcome.notes[0].startswith("target 'any' runs on cpu; not there: qnn: QNNExecution")
    with pytest.raises(StepError, match="target 'any' is required"):
        looked(tmp_path / "all", chain, "all")
    _, none = looked(tmp_path / "none", Target("none", (Link("qnn"), Link("coreml"))))
    assert none["absent"].startswith("none of it loads: qnn: QNNExecutionProvider is not in")


@pytest.mark.skipif(GPU_HERE, reason="this machine has a GPU")
def test_without_a_gpu_cuda_says_so_and_not_that_the_cpu_will_do(tmp_path):
    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        pytest.skip("this ONNX Runtime has no CUDA provider at all")
    _, report = looked(tmp_path, CUDA)
    assert report["faults"]["cuda"][0]["cause"] in ("device", "driver")
    assert "CPUExecutionProvider" not in report["absent"]
