"""Libraries that tests compile, with the headers of ONNX Runtime, which its wheels don't have."""

from __future__ import annotations

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

_PACKAGE = "pool/main/o/onnxruntime/libonnxruntime-dev_1.21.0+dfsg-1_amd64.deb"
_SHA256 = "14f7d959d5deacbcf1504830d4189f91fc67382b399ed9ae9d3aa9c4050ced08"
_FETCH = "/usr/lib/apt/apt-helper"
_KEPT = Path(sys.prefix, "share", "onnxbuild-tests", "onnxruntime-1.21.0")
_HEADER = "onnxruntime_cxx_api.h"


@functools.cache
def include_folder() -> Path | None:
    """The folder with ONNX Runtime's headers; None where there are none and none can be fetched.

    ORT_INCLUDE_DIR names it. Else they are taken from a package of Debian (85 kB, pinned by its digest) on
    the mirror that this system uses, and kept in this Python's own environment; nothing is installed.
    """
    if named := os.environ.get("ORT_INCLUDE_DIR"):
        return Path(named)
    kept = _KEPT / "usr/include/onnxruntime"
    if not (kept / _HEADER).is_file():
        _fetch()
    return kept if (kept / _HEADER).is_file() else None


def _fetch() -> None:
    if not Path(_FETCH).exists() or shutil.which("dpkg-deb") is None:
        return
    listing = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    listed = subprocess.run(listing, capture_output=True, text=True, check=False).stdout.split()
    with tempfile.TemporaryDirectory() as folder:
        package, made = Path(folder, "headers.deb"), Path(folder, "made")
        for mirror in dict.fromkeys(each for each in listed if each.endswith("/debian/")):
            command = [_FETCH, "download-file", mirror + _PACKAGE, package, f"SHA256:{_SHA256}"]
            done = subprocess.run(command, capture_output=True, timeout=120, check=False)
            if done.returncode == 0 and package.is_file():
                subprocess.run(["dpkg-deb", "-x", package, made], check=True)
                _KEPT.parent.mkdir(parents=True, exist_ok=True)
                shutil.copytree(made, _KEPT, dirs_exist_ok=True, symlinks=True)
                return


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
