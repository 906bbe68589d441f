"""What TensorRT's engines are for enters keys: GPU model, driver, TensorRT."""

import hashlib
from pathlib import Path

import pytest

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.toolchain.accelerator import (
    driver_version,
    gpu_digest,
    gpu_models,
    tensorrt_library,
)
from onnxbuild.adapters.toolchain.distributions import Distributions
from onnxbuild.adapters.toolchain.fingerprints import DiskFingerprints
from onnxbuild.core.step import GPU

VERSION = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n"


def machine(folder, *, models=("NVIDIA H200",), driver=VERSION, library="libnvinfer.so.10.13.3"):
    """A made-up /proc/driver/nvidia and a site folder; nothing here has a GPU."""
    for number, model in enumerate(models):
        gpu = folder / "proc" / "gpus" / f"0000:{number:02x}:00.0"
        gpu.mkdir(parents=True, exist_ok=True)
        (gpu / "information").write_text(f"Model: \t\t {model}\nIRQ:   \t\t 0\n")
    if driver:
        (folder / "proc").mkdir(parents=True, exist_ok=True)
        (folder / "proc" / "version").write_text(driver + "GCC version: gcc 12.2.0\n")
    if library:
        libs = folder / "site" / "tensorrt_libs"
        libs.mkdir(parents=True, exist_ok=True)
        (libs / library).write_bytes(b"10.13.3")
    return folder


def digest_of(folder):
    def sha256(path):
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()

    return gpu_digest(sha256, [f"{folder}/site"], f"{folder}/proc")


def test_the_key_names_model_driver_and_library(tmp_path, monkeypatch):
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    found = digest_of(machine(tmp_path, models=("NVIDIA H200", "NVIDIA L4")))
    name, reported, sha256 = found.split(" ")
    assert name == GPU
    assert reported == "NVIDIA_H200+NVIDIA_L4/driver-570.86.15/libnvinfer.so.10.13.3"
    assert sha256 == hashlib.sha256(b"10.13.3").hexdigest()


@pytest.mark.parametrize(
    "change",
    [
        lambda f: machine(f, models=("NVIDIA H100",)),
        (
            lambda f: (f / "site/tensorrt_libs/libnvinfer.so.10.13.3").rename(
                f / "site/tensorrt_libs/libnvinfer.so.10.14.0"
            )
        ),
    ],
    ids=["another GPU", "another TensorRT"],
)
def test_each_of_the_three_makes_another_key(tmp_path, change):
    before = digest_of(machine(tmp_path))
    change(tmp_path)
    after = digest_of(tmp_path)
    assert after is not None
    assert after != before


@pytest.mark.parametrize("missing", [{"models": ()}, {"driver": ""}, {"library": ""}], ids=str)
def test_without_one_of_them_there_is_no_key(tmp_path, missing):
    assert digest_of(machine(tmp_path, **missing)) is None


def test_the_library_of_the_loaders_path_comes_first(tmp_path, monkeypatch):
    machine(tmp_path)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "libnvinfer.so.10").write_bytes(b"")
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{tmp_path}/own")
    assert tensorrt_library([f"{tmp_path}/site"]) == f"{tmp_path}/own/libnvinfer.so.10"


def test_fingerprints_look_it_up_under_its_name(tmp_path):
    stats = StatCache(Index(tmp_path / "index.db"))
    sites = (str(machine(tmp_path) / "site"),)
    prints = DiskFingerprints(tmp_path, stats, Distributions(stats, sites))
    if gpu_models() and driver_version():
        assert prints.distribution(GPU).startswith("gpu ")
    else:
        assert prints.distribution(GPU) is None
