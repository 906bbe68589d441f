"""What is made ahead of time, through the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import QUICK, RECIPE


def asking(project, text):
    project.write("tiny.yaml", f"{RECIPE}{QUICK}ahead_of_time: {{{text}}}\n")
    return project


def test_each_is_in_a_folder_of_its_own_judged_and_reported_with_its_load_time(project):
    built = asking(project, "ort: {}, optimized: {}").run()
    assert built.code == 0, built.out + built.err
    assert {"fp32-ort/make", "fp32-ort/validate", "fp32-optimized/package"} <= set(built.ran)
    out = project.folder / "artifacts/out/tiny"
    assert sorted(path.name for path in out.iterdir()) == ["fp32", "fp32-optimized", "fp32-ort"]
    for name in ("fp32-ort", "fp32-optimized"):
        reported = json.loads((out / name / "manifest.json").read_text())
        assert reported["validation"]["cpu"]["passed"]
        assert reported["size_bytes"] > 0
        loads = json.loads((out / name / "load-times.json").read_text())["loads"]
        assert set(loads) == {"portable", "ort", "optimized"}
        subprocess.run(["sha256sum", "-c", "SHA256SUMS", "--quiet"], cwd=out / name, check=True)
        shown = subprocess.run(
            [sys.executable, "load.py"], cwd=out / name, capture_output=True, text=True, check=True
        ).stdout
        assert "output logits float32 [2, 2]" in shown
    rows = [line.split()[1] for line in built.out.splitlines() if line.startswith("tiny ")]
    assert rows == ["fp32", "fp32-ort", "fp32-optimized"]
    assert "- ?" not in built.out  # nothing is doubtful that was not measured

    again = project.run()
    assert again.ran == []
    assert "no longer has" not in again.out + again.err

    looked = project("inspect", "tiny.yaml:fp32-ort")
    assert looked.code == 2
    assert "is in ORT format" in looked.err
    diagnosed = project("diagnose", "tiny.yaml:fp32-optimized")
    assert diagnosed.code == 2
    assert "is made of 'fp32'" in diagnosed.err
    assert "onnxbuild diagnose tiny.yaml:fp32" in diagnosed.err


@pytest.mark.skipif(
    Path("/proc/driver/nvidia/version").exists(), reason="there is a GPU on this machine"
)
def test_what_needs_a_gpu_is_refused_before_it_starts_where_there_is_none(project):
    built = asking(project, "tensorrt: {}").run("--only", "fp32-tensorrt")
    assert built.code == 1
    assert "needs an NVIDIA GPU with its driver, and TensorRT" in built.out + built.err
