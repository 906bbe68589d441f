"""Libraries that tests compile, with the headers of ONNX Runtime, which its wheels don't have."""

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

HERE = Path(__file__).parent
DOMAIN = "mylib.example"

NO_HEADERS = (
    "ORT_INCLUDE_DIR names no folder with ONNX Runtime's headers, which wheels don't have, and Debian's package "
    "of them can't be had"
)

_SCRIPT = HERE.parents[1] / "onnxbuild/onnxkit/cpp/templates/fetch_headers.sh.j2"
_KEPT = Path(sys.prefix, "share", "onnxbuild-tests", "onnxruntime-headers")
_INSTALLED = HERE.parents[1] / ".servers/onnxruntime-headers"
_HEADER = "onnxruntime_cxx_api.h"


@functools.cache
def include_folder() -> Path | None:
    """The folder with ONNX Runtime's headers; None where there are none and none can be fetched.

    ORT_INCLUDE_DIR names it. Else they are those of tests/install_servers.sh, or fetched as that does, and kept
    in this Python's own environment; nothing is installed.
    """
    if named := os.environ.get("ORT_INCLUDE_DIR"):
        return Path(named)
    if (_INSTALLED / _HEADER).is_file():
        return _INSTALLED
    if not (_KEPT / _HEADER).is_file():
        command = ["bash", str(_SCRIPT), str(_KEPT)]
        subprocess.run(command, capture_output=True, timeout=300, check=False)
    return _KEPT if (_KEPT / _HEADER).is_file() else None


def compiled(
    folder: Path, name: str = "libfancy.so", source: str = "", flags: tuple[str, ...] = ()
) -> Path:
    """A shared library of C++, of native/fancy.cc where no source is given.

    Skips the test where no compiler or no header is there.
    """
    compiler, headers = shutil.which("g++") or shutil.which("clang++"), include_folder()
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    if headers is None:
        pytest.skip(NO_HEADERS)
    written = folder / f"{name}.cc"
    written.write_text(source or (HERE / "fancy.cc").read_text())
    options = ["-std=c++17", "-O1", "-shared", "-fPIC", "-Wl,--build-id=none", "-I", headers]
    subprocess.run([compiler, *options, written, "-o", folder / name, *flags], check=True)
    return folder / name


@functools.cache
def fancy_library() -> Path:
    """native/fancy.cc, compiled once in this process."""
    folder = tempfile.TemporaryDirectory(prefix="onnxbuild-native-")
    _FOLDERS.append(folder)
    return compiled(Path(folder.name))


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []
"""Removed when this process ends."""


def fancy_model(operator: str = "Fancy", domain: str = DOMAIN) -> onnx.ModelProto:
    """MatMul, a node of a custom operator, MatMul: x (batch, 8) -> y (batch, 4)."""
    import numpy as np

    draw = np.random.default_rng(0)
    weights = [
        onnx.numpy_helper.from_array(draw.standard_normal(shape, dtype=np.float32) / 3, name)
        for name, shape in (("W", (8, 16)), ("V", (16, 4)))
    ]
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "W"], ["h"], name="first"),
            helper.make_node(operator, ["h"], ["a"], name="act", domain=domain, scale=1.702),
            helper.make_node("MatMul", ["a", "V"], ["y"], name="second"),
        ],
        "fancy",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
        weights,
    )
    imports = [helper.make_opsetid("", 17)]
    imports += [helper.make_opsetid(domain, 1)] if domain else []
    return helper.make_model(graph, opset_imports=imports, ir_version=9)
