"""ONNX Runtime Web: which of its files a package needs, and what it takes.

Source: onnxruntime-web 1.30.0, package.json and dist/.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onnxbuild.core.environment import BUILT_IN
from onnxbuild.onnxkit.bundles.manifest import Manifest
from onnxbuild.onnxkit.sessions.settings import SessionSettings

NPM_LIST = f"{BUILT_IN}/onnxkit/web/package-lock.json"
PACKAGE = "onnxruntime-web"
VERSION = "1.30.0"
FOLDER = "runtime/"
WEBGPU, WASM = "webgpu", "wasm"
ML_DOMAIN = "ai.onnx.ml"
"""Operators that the build for WebGPU is without; that for WebAssembly has them."""

BUILDS: Mapping[str, Mapping[str, str]] = {
    "wasm": {
        "js": "ort.wasm.min.mjs",
        "mjs": "ort-wasm-simd-threaded.mjs",
        "wasm": "ort-wasm-simd-threaded.wasm",
    },
    "webgpu": {
        "js": "ort.webgpu.min.mjs",
        "mjs": "ort-wasm-simd-threaded.asyncify.mjs",
        "wasm": "ort-wasm-simd-threaded.asyncify.wasm",
    },
}
"""Provider -> its files. The plain build is half the size of WebGPU's, so that a browser without WebGPU loads
less; `asyncify` runs in every browser that has WebGPU, `jspi` in few."""

MOST_BYTES = 1_900_000_000
"""WebAssembly addresses 4 GiB, and a session needs the model twice while it opens; an ArrayBuffer ends at 2 GiB."""

_LEVELS = {"disable": "disabled", "basic": "basic", "extended": "extended"}
"""Session's graph_optimization -> graphOptimizationLevel; all optimizations are its default."""


def copy_runtime(node_modules: Path, folder: Path, providers: Sequence[str]) -> list[str]:
    """Copy the files of providers, and return their names in the package.

    Args:
        node_modules: Has the package onnxruntime-web.
    """
    names = [name for each in providers for name in BUILDS[each].values()]
    (folder / FOLDER).mkdir()
    for name in names:
        shutil.copyfile(node_modules / PACKAGE / "dist" / name, folder / FOLDER / name)
    return [f"{FOLDER}{name}" for name in names]


def session_of(manifest: Manifest) -> SessionSettings:
    """Return the variant's settings; of a model in ORT format those that its gate opened it with."""
    targets = [each.session for each in (manifest.targets or {}).values()]
    return manifest.session or (targets[0] if targets else SessionSettings())


def session_options(settings: SessionSettings) -> dict[str, Any]:
    """Return the options of InferenceSession.create that differ from its own; threads are the page's."""
    options: dict[str, Any] = {}
    if settings.graph_optimization in _LEVELS:
        options["graphOptimizationLevel"] = _LEVELS[settings.graph_optimization]
    if not settings.memory_pattern:
        options["enableMemPattern"] = False
    if not settings.cpu_arena:
        options["enableCpuMemArena"] = False
    if settings.free_dimensions:
        options["freeDimensionOverrides"] = dict(settings.free_dimensions)
    extra: dict[str, Any] = {}
    for key, value in settings.config.items():
        *above, last = key.split(".")
        place = extra
        for part in above:
            place = place.setdefault(part, {})
        place[last] = str(value)
    return {**options, **({"extra": extra} if extra else {})}


def settings_left_out(settings: SessionSettings) -> list[str]:
    """Return the settings that differ from ONNX Runtime's own and have no place in a browser."""
    own = SessionSettings()
    names = (
        "execution_mode", "intra_op_threads", "inter_op_threads", "spinning", "deterministic_compute",
    )  # fmt: skip
    return [name for name in names if getattr(settings, name) != getattr(own, name)]
