"""The benchmark of GPUs, as far as it goes without one: parts, libraries, refusals, and its figures on the CPU."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.gpu.__main__ import why_not
from benchmarks.gpu.libraries import find_libraries, library_folders, needed_by
from benchmarks.gpu.parts import PartsError, join, split
from benchmarks.gpu.report import gpus
from benchmarks.gpu.wheels import UnableError, unpack_wheels

ROOT = Path(__file__).parents[2]
CAPI = Path(find_spec("onnxruntime").origin).parent / "capi"
CUDA = CAPI / "libonnxruntime_providers_cuda.so"


@pytest.fixture
def whole(tmp_path):
    file = tmp_path / "big-1.0-py3-none-any.whl"
    file.write_bytes(os.urandom(2_500))
    return file


@pytest.fixture
def carried(whole, tmp_path):
    folder = tmp_path / "carried"
    split(whole, folder, 1_000)
    return folder


def test_a_file_is_joined_from_its_parts(whole, carried, tmp_path):
    assert sorted(path.name.removeprefix(whole.name) for path in carried.iterdir()) == [
        ".part000", ".part001", ".part002", ".parts.json",
    ]  # fmt: skip
    assert max(path.stat().st_size for path in carried.glob("*.part0*")) == 1_000
    (joined,) = join(carried, tmp_path / "there")
    assert joined.name == whole.name
    assert joined.read_bytes() == whole.read_bytes()


def test_what_did_not_arrive_or_is_damaged_is_named_and_nothing_is_joined(
    whole, carried, tmp_path
):
    second = carried / f"{whole.name}.part001"
    content = second.read_bytes()
    second.unlink()
    with pytest.raises(PartsError, match=r"part001 of 3 parts did not arrive"):
        join(carried, tmp_path / "there")
    second.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(PartsError, match=r"part001 is damaged"):
        join(carried, tmp_path / "there")
    second.write_bytes(content[:-1])
    with pytest.raises(PartsError, match=r"part001 is damaged"):
        join(carried, tmp_path / "there")
    assert list((tmp_path / "there").iterdir()) == []


@pytest.mark.skipif(not CUDA.is_file(), reason="this onnxruntime is no onnxruntime-gpu")
def test_the_libraries_of_the_cuda_provider_are_read_from_its_header():
    needed = needed_by(CUDA)
    assert {name.partition(".so")[0] for name in needed} >= {
        "libcudart",
        "libcublas",
        "libcublasLt",
    }
    assert "libcuda.so.1" in needed


needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


def library(path, needs=()):
    """A real shared library without code that needs others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [
        "gcc",
        "-shared",
        "-nostdlib",
        "-Wl,--no-as-needed,--allow-shlib-undefined",
        f"-Wl,-soname,{path.name}",
    ]
    subprocess.run(
        [*command, "-x", "c", "/dev/null", "-x", "none", *map(str, needs), "-o", path], check=True
    )
    return path


@pytest.fixture
def site(tmp_path):
    """Packages as torch brings them: nvidia/cu13/lib, nvidia/cudnn/lib and torch/lib."""
    site = tmp_path / "site-packages"
    lt = library(site / "nvidia/cu13/lib/libcublasLt.so.13")
    blas = library(site / "nvidia/cu13/lib/libcublas.so.13", [lt])
    cudnn = library(site / "nvidia/cudnn/lib/libcudnn.so.9")
    runtime = library(site / "torch/lib/libcudart.so.13")
    library(site / "onnxruntime/capi/libonnxruntime_providers_cuda.so", [blas, runtime])
    return site, cudnn


@needs_gcc
def test_libraries_are_found_below_torch_and_the_nvidia_packages(site):
    folder, cudnn = site
    provider = folder / "onnxruntime/capi/libonnxruntime_providers_cuda.so"
    found = find_libraries(provider, library_folders([folder], {}), ["libcudnn.so.9"])
    assert sorted(found.found) == [
        "libcublas.so.13",
        "libcublasLt.so.13",
        "libcudart.so.13",
        "libcudnn.so.9",
    ]
    assert found.missing == ()
    assert {path.relative_to(folder).as_posix() for path in found.folders} == {
        "nvidia/cu13/lib", "nvidia/cudnn/lib", "torch/lib",
    }  # fmt: skip
    cudnn.unlink()
    (folder / "nvidia/cu13/lib/libcublasLt.so.13").unlink()
    found = find_libraries(provider, library_folders([folder], {}), ["libcudnn.so.9"])
    assert sorted(found.missing) == ["libcublasLt.so.13", "libcudnn.so.9"]


@needs_gcc
def test_why_a_provider_cannot_run_is_one_sentence(site, tmp_path, monkeypatch):
    folder, cudnn = site
    monkeypatch.setattr(sys, "path", [str(folder)])  # a torch with CUDA brings its own cuDNN
    capi = folder / "onnxruntime/capi"
    assert why_not("cpu", capi, [], {}) == ("", None)
    why, _ = why_not("tensorrt", capi, ["a GPU"], {})
    assert "no provider for tensorrt" in why
    why, _ = why_not("cuda", capi, [], {})
    assert why.startswith("no NVIDIA GPU is here")
    path = {
        "LD_LIBRARY_PATH": os.pathsep.join(str(path) for path in library_folders([folder], {}))
    }
    assert why_not("cuda", capi, ["a GPU"], path)[0] == ""
    cudnn.unlink()
    why, _ = why_not("cuda", capi, ["a GPU"], path)
    assert why.startswith("cuda needs libcudnn.so.9, which none of")


def wheel_of(folder, tag):
    path = folder / f"carried_package-1.0-{tag}.whl"
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as files:
        files.writestr("carried_package.py", "HERE = True\n")
    return path


def test_wheels_that_are_not_for_here_are_refused(tmp_path):
    wheel_of(tmp_path / "wheels", "cp27-cp27m-linux_x86_64")
    with pytest.raises(UnableError, match="is for cp27"):
        unpack_wheels(tmp_path / "wheels", tmp_path / "site")


def measured(folder, *arguments):
    command = [
        sys.executable,
        "-m",
        "benchmarks.gpu",
        "--size",
        "tiny",
        "--seconds",
        "0.01",
        "--out",
        folder,
    ]
    return subprocess.run(
        [*command, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.skipif(bool(gpus()), reason="a GPU is here")
def test_without_a_gpu_the_command_says_so(tmp_path):
    asked = []
    done = measured(tmp_path, *asked)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "GPU" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "report.json").exists()


@pytest.mark.slow
def test_the_same_command_gives_figures_of_the_cpu(tmp_path):
    wheel_of(tmp_path / "wheels", "py3-none-any")
    done = measured(
        tmp_path / "out",
        "--providers",
        "cpu",
        "--models",
        "convnet",
        "--wheels",
        tmp_path / "wheels",
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "out/report.json").read_text())
    assert report["command"].startswith("python -m benchmarks.gpu --size tiny")
    assert "--wheels" in report["command"]
    assert report["machine"]["packages"]["onnx"]
    found = {
        (case["precision"], case["way"]): case
        for case in report["cases"]
        if case["provider"] == "cpu"
    }
    assert set(found) == {
        (precision, way) for precision in ("fp32", "fp16", "int8") for way in ("run", "io_binding")
    }
    for (precision, _), case in found.items():
        assert case["state"] == "measured"
        assert 0 < case["p50_ms"] <= case["p95_ms"]
        assert case["runs"] >= 5
        assert (case["max_abs_error"] == 0) == (precision == "fp32")
        assert case["nodes"]["CPUExecutionProvider"] > 0
    page = (tmp_path / "out/report.md").read_text()
    assert "| cpu int8 io binding |" in page
    assert (tmp_path / "out/site/carried_package.py").is_file()
