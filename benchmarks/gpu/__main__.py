"""Measure CUDA and TensorRT on this machine, and write figures with machine and command.

    python -m benchmarks.gpu --wheels FOLDER --out FOLDER     # parts or wheels of onnxruntime-gpu, ...
    python -m benchmarks.gpu --out FOLDER                     # with what is installed
    python -m benchmarks.gpu --providers cpu --size tiny      # the script itself, without a GPU

Exit codes: 0 all was measured, 1 a case failed, 2 a provider that was asked for can't run here, 3 a result is wrong.
TensorRT is left out, with the reason in the report, where its library is missing and --providers does not name it.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.gpu.case import FULL_NAMES, WAYS
from benchmarks.gpu.libraries import (
    LOADED_LATER,
    PROVIDERS,
    Libraries,
    find_libraries,
    library_folders,
)
from benchmarks.gpu.report import gpus, machine, markdown
from benchmarks.gpu.wheels import ROOT, UnableError, run_with

COSINE_MIN = {"fp32": 0.9999, "fp16": 0.999, "int8": 0.98}
_TIMEOUT_S = 300.0
_OK, _FAILED, _UNABLE, _WRONG = 0, 1, 2, 3


def why_not(
    provider: str, capi: Path, present: Iterable[str], environment: Mapping[str, str]
) -> tuple[str, Libraries | None]:
    """Return why a provider can't run here, or nothing; and its libraries.

    Args:
        provider: `cpu`, `cuda` or `tensorrt`.
        capi: ONNX Runtime's folder of libraries.
        present: The GPUs.
        environment: For LD_LIBRARY_PATH.
    """
    if provider == "cpu":
        return "", None
    library = capi / PROVIDERS[provider]
    if not library.is_file():
        return (
            f"this ONNX Runtime has no provider for {provider}: it is another build than onnxruntime-gpu; "
            "fix: --wheels FOLDER with the wheel of onnxruntime-gpu"
        ), None
    if not list(present):
        return (
            "no NVIDIA GPU is here: nvidia-smi finds none; to try the script without one: --providers cpu --size tiny",
            None,
        )
    found = find_libraries(
        library, library_folders(environment=environment), LOADED_LATER[provider]
    )
    if found.missing:
        fix = (
            "pip install 'tensorrt-cu13<11'"
            if "libnvinfer" in " ".join(found.missing)
            else "pip install the torch of this CUDA, or set LD_LIBRARY_PATH"
        )
        return (
            f"{provider} needs {', '.join(found.missing)}, which none of {len(found.searched)} folders has; fix: {fix}",
            found,
        )
    return "", found


def measure_all(given: argparse.Namespace, work: Path) -> list[dict[str, Any]]:
    """Measure every case that can run here, each in a process of its own.

    Args:
        given: The command line.
        work: A folder for models and outputs.

    Raises:
        UnableError: A provider that was asked for can't run here.
    """
    from benchmarks.gpu.models import PRECISIONS, feeds_of, write_model

    spec = find_spec("onnxruntime")
    if spec is None or spec.origin is None:
        raise UnableError(
            "ONNX Runtime is not installed; fix: pip install onnxruntime-gpu, or --wheels FOLDER"
        )
    capi, present = Path(spec.origin).parent / "capi", gpus()
    reasons = {name: why_not(name, capi, present, os.environ) for name in given.providers}
    required = (
        given.providers
        if given.named
        else [name for name in given.providers if name != "tensorrt"]
    )
    unable = dict.fromkeys(reasons[name][0] for name in required if reasons[name][0])
    if unable:
        raise UnableError("; ".join(unable))
    folders = [str(path) for _, found in reasons.values() if found for path in found.folders]
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": os.pathsep.join(
            [*folders, os.environ.get("LD_LIBRARY_PATH", "")]
        ).strip(os.pathsep),
    }
    cases = []
    for model in given.models:
        reference = work / f"{model}-reference.npy"
        reference.unlink(missing_ok=True)
        paths = {
            precision: write_model(model, given.size, precision, work) for precision in PRECISIONS
        }
        _save_feeds(work / f"{model}-feeds.npz", feeds_of(model, given.size))
        asked = list(product(given.providers, PRECISIONS, WAYS))
        if "cpu" not in given.providers:
            asked.insert(0, ("cpu", "fp32", "run"))  # what all others are compared with
        for provider, precision, way in asked:
            case = {"model": model, "provider": provider, "precision": precision, "way": way}
            why = reasons.get(provider, ("", None))[0]
            if provider == "cpu" and way == "cuda_graph":
                continue
            if why:
                cases.append({**case, "state": "unable", "why": why})
            else:
                files = {
                    "model": str(paths[precision]),
                    "feeds": str(work / f"{model}-feeds.npz"),
                    "reference": str(reference),
                }
                cases.append({**case, **_measured({**case, **files}, given, work, environment)})
            print(_line(cases[-1]), flush=True)
    return cases


def _save_feeds(path: Path, feeds: dict[str, Any]) -> None:
    import numpy as np

    np.savez(path, **feeds)


def _measured(
    case: dict[str, Any], given: argparse.Namespace, work: Path, environment: Mapping[str, str]
) -> dict[str, Any]:
    result = work / "result.json"
    result.unlink(missing_ok=True)
    asked = {**case, "seconds": given.seconds, "threads": given.threads, "result": str(result)}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.gpu.case"],
            input=json.dumps(asked),
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"state": "failed", "why": f"it took longer than {_TIMEOUT_S:.0f} s"}
    if done.returncode or not result.exists():
        said = [line for line in done.stderr.splitlines() if line.strip()]
        ended = (
            f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
        )
        return {"state": "failed", "why": f"{said[-1][:300] if said else 'no message'} ({ended})"}
    figures = json.loads(result.read_text(encoding="utf-8"))
    if figures["cosine"] < COSINE_MIN[case["precision"]]:
        least = COSINE_MIN[case["precision"]]
        return {
            **figures,
            "state": "wrong",
            "why": f"cosine {figures['cosine']:.6f} to the CPU in fp32, at least {least} is expected",
        }
    return {**figures, "state": "measured"}


def _line(case: dict[str, Any]) -> str:
    name = f"{case['model']} {case['provider']} {case['precision']} {case['way']}"
    return (
        f"{name}: {case['p50_ms']:.3f} ms"
        if case["state"] == "measured"
        else f"{name}: {case['state']}: {case['why']}"
    )


def main() -> int:
    """Measure, and write report.json and report.md."""
    first, _, more = __doc__.partition("\n")
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu",
        description=first,
        epilog=more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--providers",
        nargs="+",
        choices=("cpu", "cuda", "tensorrt"),
        help="execution providers to measure [default: all; TensorRT only where its library is]",
    )
    parser.add_argument(
        "--models",
        nargs="+",
        choices=("encoder", "convnet"),
        default=["encoder", "convnet"],
        help="models to measure [default: both]",
    )
    parser.add_argument(
        "--size",
        choices=("base", "tiny"),
        default="base",
        help="of the models; tiny is for trying the script, its figures say nothing [default: base]",
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="for each case [default: 2]")
    parser.add_argument(
        "--threads", type=int, default=0, help="of the CPU [default: ONNX Runtime's own]"
    )
    parser.add_argument(
        "--wheels",
        type=Path,
        help="folder of wheels, or of their parts, to use without installing them",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("build/gpu"),
        help="folder of the report [default: build/gpu]",
    )
    given = parser.parse_args()
    given.named = given.providers is not None
    given.providers = given.providers or [*FULL_NAMES]
    out = given.out.resolve()
    work = out / "work"
    work.mkdir(parents=True, exist_ok=True)
    try:
        if given.wheels is not None:
            return run_with(given.wheels, out / "site")
        cases = measure_all(given, work)
    except UnableError as error:
        print(f"error: {error}", file=sys.stderr)
        return _UNABLE
    command = shlex.join(["python", "-m", "benchmarks.gpu", *sys.argv[1:]])
    report = {
        "format": 1,
        "command": os.environ.get("GPU_BENCHMARK_COMMAND", command),
        "machine": machine(),
        "cases": cases,
    }
    (out / "report.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    (out / "report.md").write_text(markdown(report), encoding="utf-8")
    print(f"wrote {out / 'report.json'} and {out / 'report.md'}")
    states = {case["state"] for case in cases}
    return _WRONG if "wrong" in states else _FAILED if "failed" in states else _OK


if __name__ == "__main__":
    sys.exit(main())
