"""Packages of a lock: what a bill of materials lists."""

from onnxbuild.core.action import NOT_INSTALLED
from onnxbuild.core.environment import Environment
from onnxbuild.core.step import COMPILER, COPIED, GPU, PACKAGES
from onnxbuild.lock.model import Lock
from onnxbuild.release_format.distributions import packages_of

TORCH = f"torch 2.13.0+cpu {'a' * 64}"


def locked(packages):
    return Lock("r.yaml", "0", {}, {}, "3.11", packages, {}, {}, {}, {})


def test_a_compiler_and_a_gpu_are_in_the_toolchain_and_are_no_packages():
    toolchain = {COMPILER: f"g++ x86_64-linux-gnu-g++-12 {'b' * 64}", GPU: "gpu none -"}
    (found,) = packages_of(locked({"torch": TORCH, **toolchain}))
    assert (found.name, found.version, found.record) == ("torch", "2.13.0+cpu", "a" * 64)
    assert found.purl == "pkg:pypi/torch@2.13.0%2Bcpu"


def test_packages_of_other_environments_are_reported_and_their_interpreters_are_not():
    there = Environment(requirements="openvino.txt")
    found = packages_of(
        locked(
            {
                "numpy": f"numpy 2.4.6 {'d' * 64}",
                there.package("numpy"): f"numpy 2.2.6 {'e' * 64}",
                there.package("onnxruntime-openvino"): f"onnxruntime-openvino 1.24.1 {'f' * 64}",
                there.package("python"): "cpython-311 3.11.7 (main, May 9) [GCC 12.2.0]",
            }
        )
    )
    assert [(each.name, each.version) for each in found] == [
        ("numpy", "2.2.6"),
        ("numpy", "2.4.6"),
        ("onnxruntime-openvino", "1.24.1"),
    ]


def test_what_is_no_package_or_absent_is_in_no_bill():
    absent = {"flash-attn": NOT_INSTALLED, PACKAGES: "packages 3 ab", f"{COPIED}x>": "x copied ab"}
    (found,) = packages_of(locked({"torch": TORCH, **absent}))
    assert found.name == "torch"


def test_npms_packages_have_its_urls_and_node_is_none():
    there = Environment(npm="<onnxbuild>/onnxkit/node/package-lock.json")
    found = packages_of(
        locked(
            {
                there.package("@scope/tool"): "@scope/tool 1.2.3 sha512-A",
                there.package("node"): f"node v20.1.0 {'a' * 64}",
            }
        )
    )
    assert [(each.name, each.record) for each in found] == [("@scope/tool", "")]
    assert found[0].purl == "pkg:npm/%40scope/tool@1.2.3"
