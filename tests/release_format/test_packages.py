"""Packages of a lock: what a bill of materials lists."""

from onnxbuild.core.step import COMPILER, GPU
from onnxbuild.lock.model import Lock
from onnxbuild.release_format.packages import packages_of

TORCH = f"torch 2.13.0+cpu {'a' * 64}"


def locked(packages):
    return Lock("r.yaml", "0", {}, {}, "3.11", packages, {}, {}, {}, {})


def test_a_compiler_and_a_gpu_are_in_the_toolchain_and_are_no_packages():
    toolchain = {COMPILER: f"g++ x86_64-linux-gnu-g++-12 {'b' * 64}", GPU: "gpu none -"}
    (found,) = packages_of(locked({"torch": TORCH, **toolchain}))
    assert (found.name, found.version, found.record) == ("torch", "2.13.0+cpu", "a" * 64)
    assert found.purl == "pkg:pypi/torch@2.13.0%2Bcpu"


def test_a_package_that_goes_by_two_names_is_told_once():
    record = f"onnxruntime-gpu 1.31.1 {'c' * 64}"
    found = packages_of(locked({"onnxruntime": record, "onnxruntime-gpu": record}))
    assert [each.name for each in found] == ["onnxruntime-gpu"]


def test_a_package_without_a_record_has_no_digest():
    assert packages_of(locked({"own": "own 0.1 none"}))[0].record == ""
