"""What is made ahead of time, through the command line."""

from __future__ import annotations

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


def test_one_can_be_made_by_its_name_and_the_same_bytes_come_out_elsewhere(project, tmp_path):
    from tests.cli.conftest import make_project

    other = make_project(tmp_path / "other" / "place")
    found = []
    for each in (project, other):
        built = asking(each, "ort: {}").run("--only", "fp32-ort")
        assert built.code == 0, built.out + built.err
        assert "benchmark" not in built.ran
        folder = each.folder / "artifacts/out/tiny/fp32-ort"
        found.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert found[0] == found[1]


@pytest.mark.skipif(
    Path("/proc/driver/nvidia/version").exists(), reason="there is a GPU on this machine"
)
@pytest.mark.parametrize("text", ["tensorrt: {}", "compiled: {provider: tensorrt}"])
def test_what_needs_a_gpu_is_refused_before_it_starts_where_there_is_none(project, text):
    built = asking(project, text).run("--only", f"fp32-{text.partition(':')[0]}")
    assert built.code == 1
    assert "needs an NVIDIA GPU with its driver, and TensorRT" in built.out + built.err


def test_a_provider_that_compiles_nothing_is_a_mistake_in_the_recipe(project):
    found = asking(project, "compiled: {provider: cpu}").run()
    assert found.code == 2
    assert "has no compiled models (EPContext): its kernels run the nodes as they are" in found.err
    assert "optimized: {}" in found.err
