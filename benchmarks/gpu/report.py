"""The report: JSON for programs, Markdown for docs/performance.md."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_PACKAGES = ("onnxruntime-gpu", "onnxruntime", "onnx", "numpy", "torch", "tensorrt")


def machine() -> dict[str, Any]:
    """Return what the figures hang on: GPU, driver, CPU, versions."""
    return {
        "gpus": gpus(),
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def gpus() -> list[str]:
    """Return a line for each GPU: name, driver, memory, clock; empty without nvidia-smi, or where it finds none."""
    asked = "name,driver_version,memory.total,clocks.max.sm"
    try:
        done = subprocess.run(
            ["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return (
        [line.strip() for line in done.stdout.splitlines() if line.strip()]
        if done.returncode == 0
        else []
    )


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def markdown(report: dict[str, Any]) -> str:
    """Return the report as a page: machine, command, one table a model, what was left out and why."""
    about = report["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in about["packages"].items())
    hardware = (
        f"GPU: {'; '.join(about['gpus']) or 'none'}. CPU: {about['cpu']}, {about['cores']} cores."
    )
    lines = [
        f"{hardware} {about['system']}, Python {about['python']}, {packages}.",
        "",
        "```console",
        report["command"],
        "```",
    ]
    for model in dict.fromkeys(case["model"] for case in report["cases"]):
        lines += ["", *_table(model, [case for case in report["cases"] if case["model"] == model])]
    left = [case for case in report["cases"] if case["state"] != "measured"]
    if left:
        lines += ["", "Not measured:", ""]
        lines += [f"- {_name(case)}: {case['why']}" for case in left]
    return "\n".join(lines) + "\n"


def _table(model: str, cases: Sequence[dict[str, Any]]) -> list[str]:
    measured = [case for case in cases if case["state"] == "measured"]
    if not measured:
        return []
    first = measured[0]
    lines = [
        f"| {model} | p50 | p95 | x {_short(first)} | max abs error | cosine | nodes |",
        "|---|---|---|---|---|---|---|",
    ]
    for case in measured:
        nodes = ", ".join(
            f"{name.removesuffix('ExecutionProvider')} {count}"
            for name, count in case["nodes"].items()
        )
        lines.append(
            f"| {_short(case)} | {case['p50_ms']:.3f} ms | {case['p95_ms']:.3f} ms | "
            f"{first['p50_ms'] / case['p50_ms']:.2f} | {case['max_abs_error']:.1e} | {case['cosine']:.6f} | {nodes or '-'} |"
        )
    return lines


def _short(case: dict[str, Any]) -> str:
    return f"{case['provider']} {case['precision']} {case['way'].replace('_', ' ')}"


def _name(case: dict[str, Any]) -> str:
    return f"{case['model']}, {_short(case)}"
