"""Reports as steps write them, in a folder: what a page is made of."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from onnxbuild.onnxkit.report_page.blocks import ReportSource

POINTS = {"example": 1e-6, "min": 2e-6, "max-batch": 5e-6}


def written(folder: Path, files: dict[str, Any]) -> dict[str, Path]:
    folder.mkdir(parents=True)
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value))
    return {name: folder / name for name in files}


def validation(scale: float = 1.0, output: str = "logits", *, breach: str = "") -> dict[str, Any]:
    def one(error: float) -> dict[str, Any]:
        return {
            "breaches": [breach] if breach else [],
            "abs_quantiles": [error / 10, error / 5, error / 2, error / 1.5],
            "cosine": 1 - error, "elements": 20, "equal": None, "max_abs": error, "max_rel": 0.1,
            "mean_abs": error / 4, "sqnr_db": 60.0, "worst": [0, 3], "worst_actual": 1.0,
            "worst_expected": 1.0 + error,
        }  # fmt: skip

    errors = {name: error * scale for name, error in POINTS.items()}
    return {
        "passed": not breach,
        "metrics": {
            "cosine_min": 1 - max(errors.values()), "equal_min": None, "points": 3,
            "max_abs": max(errors.values()), "points_passed": 0 if breach else 3,
        },
        "placement": {"coverage": 1.0, "nodes": {"CPUExecutionProvider": 12}},
        "tolerances": {"cosine_min": 0.98, "equal_min": 0.95},
        "provider": "cpu",
        "points": [
            {"point": name, "sizes": {"batch": 2}, "outputs": {output: one(error)}}
            for name, error in errors.items()
        ],
    }  # fmt: skip


def benchmark(times_ms: dict[str, float]) -> dict[str, Any]:
    return {
        "host": {"noisy": []},
        "provider": "cpu",
        "models": {
            name: {
                "load_s": 0.01, "first_inference_ms": 1.5, "size_bytes": int(1e6 * time),
                "peak_rss_growth_bytes": 2_000_000, "steady_rss_growth_bytes": 1_000_000,
            }
            for name, time in times_ms.items()
        },
        "points": [
            {
                "point": "batch=1",
                "results": {
                    name: {
                        "p50_ms": time, "p50_low_ms": time * 0.9, "p50_high_ms": time * 1.1,
                        "p90_ms": time * 1.5, "p99_ms": time * 2, "samples": 400,
                        "throughput_items_per_s": 1e3 / time,
                        "speedup": 3 / time, "speedup_low": 2.9 / time, "speedup_high": 3.1 / time,
                    }
                    for name, time in times_ms.items()
                },
            }
        ],
    }  # fmt: skip


def manifest(inputs: str = "image") -> dict[str, Any]:
    return {
        "inputs": [{"name": inputs, "dtype": "float32", "shape": ["batch", 4]}],
        "outputs": [{"name": "logits", "dtype": "float32", "shape": ["batch", 2]}],
        "dynamic_axes": {"batch": {"min": 1, "max": 8, "example": 2, "multiple_of": 1}},
        "files": {"model.onnx": {"sha256": "ab" * 32, "size_bytes": 5000}},
        "kind": "onnx", "precision": "fp32", "size_bytes": 5000, "nodes": 3, "parameters": 58,
        "opsets": {"ai.onnx": 18}, "versions": {"onnx": "1.23.2"},
    }  # fmt: skip


def a_build(
    folder: Path, *, names: tuple[str, ...] = ("fp32", "int8"), runs: int = 400
) -> list[ReportSource]:
    """Two variants, or more, that pass; the second is faster, smaller and less exact."""
    sources = []
    for n, name in enumerate(names):
        report = written(folder / f"v{n}", {"report.json": validation(1e3**n)})
        sources.append(ReportSource("validation", name, "validate", is_gate=True, files=report))
        described = written(folder / f"m{n}", {"manifest.json": manifest()})
        sources.append(ReportSource("bundle", name, "bundle", files=described))
    times = {name: 2.0 / (n + 1) for n, name in enumerate(names)}
    measured = written(folder / "b", {"report.json": benchmark({**times, "pytorch": 3.0})})
    samples = {
        f"batch=1/{name}/runs_ns": np.linspace(1e6 * time, 2e6 * time, runs).astype(np.int64)
        for name, time in times.items()
    }
    np.savez(folder / "b/samples.npz", **samples)
    files = {**measured, "samples.npz": folder / "b/samples.npz"}
    return [*sources, ReportSource("benchmark", "", "benchmark", files=files)]
