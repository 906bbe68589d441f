"""One measurement in a process of its own: a crash of a driver ends it, and no other.

Reads a case as JSON from standard input, writes its figures as JSON to the file that the case names.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

FULL_NAMES = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
}
WAYS = ("run", "io_binding", "cuda_graph")
_WARMUP = 10
_LEAST = 5
"""Runs to warm up, as far as half the time suffices, and the least runs that count."""


def options_of(provider: str, precision: str, way: str) -> dict[str, str]:
    """Return the provider's options of a case."""
    options: dict[str, str] = {}
    if provider != "cpu":
        options["device_id"] = "0"
    if provider == "tensorrt":
        options["trt_fp16_enable"] = "1" if precision != "fp32" else "0"
        options["trt_int8_enable"] = "1" if precision == "int8" else "0"
    if way == "cuda_graph":
        options["enable_cuda_graph" if provider == "cuda" else "trt_cuda_graph_enable"] = "1"
    return options


def measure(case: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a case: milliseconds a run, error against the reference, nodes by provider.

    Args:
        case: `model`, `feeds`, `reference` (paths), `provider`, `precision`, `way`, `seconds`, `threads`.
    """
    import onnxruntime

    name = FULL_NAMES[case["provider"]]
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    if case["threads"]:
        settings.intra_op_num_threads = case["threads"]
    settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if case["provider"] == "cpu":  # 16-bit sums of int8 products saturate on x86 without VNNI
        settings.add_session_config_entry("session.x64quantprecision", "1")
    begun = time.perf_counter()
    chain = [(name, options_of(case["provider"], case["precision"], case["way"]))]
    if case["provider"] != "cpu":
        chain += (
            [(FULL_NAMES["cuda"], {"device_id": "0"})] if case["provider"] == "tensorrt" else []
        )
        chain += [(FULL_NAMES["cpu"], {})]
    session = onnxruntime.InferenceSession(case["model"], settings, providers=chain)
    loaded_s = time.perf_counter() - begun
    if session.get_providers()[0] != name:
        raise RuntimeError(
            f"{name} did not load; the session has {', '.join(session.get_providers())}"
        )
    feeds = dict(np.load(case["feeds"]))
    once = _once(session, feeds, case)
    outputs = once()
    half = time.perf_counter() + case["seconds"] / 2
    for _ in range(_WARMUP):
        once()
        if time.perf_counter() > half:
            break
    times_ms: list[float] = []
    ends = time.perf_counter() + case["seconds"]
    while len(times_ms) < _LEAST or time.perf_counter() < ends:
        started = time.perf_counter_ns()
        once()
        times_ms.append((time.perf_counter_ns() - started) / 1e6)
    return {
        "p50_ms": float(np.percentile(times_ms, 50)),
        "p95_ms": float(np.percentile(times_ms, 95)),
        "runs": len(times_ms),
        "load_s": loaded_s,
        "providers": session.get_providers(),
        "nodes": _nodes(session),
        **_errors(outputs, Path(case["reference"])),
    }


def _once(session: Any, feeds: dict[str, Any], case: dict[str, Any]) -> Any:
    """A callable that runs the model once, waits for it, and returns its output on the host."""
    import onnxruntime

    if case["way"] == "run":
        return lambda: session.run(["y"], feeds)[0]
    device = "cpu" if case["provider"] == "cpu" else "cuda"
    binding = session.io_binding()
    for name, value in feeds.items():
        binding.bind_ortvalue_input(
            name, onnxruntime.OrtValue.ortvalue_from_numpy(value, device, 0)
        )
    shape = (
        session.run(["y"], feeds)[0].shape
        if case["way"] == "io_binding"
        else np.load(case["reference"]).shape
    )
    held = onnxruntime.OrtValue.ortvalue_from_shape_and_type(list(shape), np.float32, device, 0)
    binding.bind_ortvalue_output("y", held)

    def bound() -> Any:
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        return held

    return bound


def _nodes(session: Any) -> dict[str, int]:
    """Count the nodes that each provider took; empty if this ONNX Runtime does not report it."""
    if not hasattr(session, "get_provider_graph_assignment_info"):
        return {}
    counted: Counter[str] = Counter()
    for part in session.get_provider_graph_assignment_info():
        counted[part.ep_name] += len(part.get_nodes())
    return dict(sorted(counted.items()))


def _errors(output: Any, reference: Path) -> dict[str, float]:
    """Largest absolute difference and cosine, in float64; of the reference itself none."""
    found = np.asarray(output.numpy() if hasattr(output, "numpy") else output, np.float64)
    if not reference.exists():
        np.save(reference, found.astype(np.float32))
        return {"max_abs_error": 0.0, "cosine": 1.0}
    expected = np.load(reference).astype(np.float64)
    if found.shape != expected.shape or not np.isfinite(found).all():
        return {"max_abs_error": float("inf"), "cosine": 0.0}
    norms = float(np.linalg.norm(found) * np.linalg.norm(expected))
    return {
        "max_abs_error": float(np.abs(found - expected).max()),
        "cosine": float((found * expected).sum() / norms) if norms else 0.0,
    }


if __name__ == "__main__":
    given = json.load(sys.stdin)
    Path(given["result"]).write_text(json.dumps(measure(given)), encoding="utf-8")
