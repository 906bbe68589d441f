"""Open the model beside this file, which was made ahead of time: maybe for one machine alone.

    from load import load
    session = load()
    outputs = session.run(None, {"input": array})

Needs onnxruntime alone. `python load.py` runs once on ones. `load(options)` takes an
onnxruntime.SessionOptions with threads and the like of your own. Where the manifest names the
machine that the model was made for, another kind of machine is refused: its layouts would be read
as this one's, and give wrong numbers or none.
"""

from __future__ import annotations

import json
import platform
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CPU = "CPUExecutionProvider"

_LEVELS = {"disable": "ORT_DISABLE_ALL", "all": "ORT_ENABLE_ALL"}


class OtherMachineError(RuntimeError):
    """This machine is not of the kind that the model was made for."""


def load(options: Any = None) -> Any:
    """An onnxruntime.InferenceSession on the provider that the model was made for.

    Raises:
        OtherMachineError: It was made for another kind of machine.
        RuntimeError: This onnxruntime lacks the provider, or it does not load.
    """
    import onnxruntime

    manifest = read_manifest()
    made_for = manifest["made_for"]
    if made_for is not None:
        check_machine(made_for, manifest, onnxruntime.__version__)
    provider, there = manifest["provider"], onnxruntime.get_available_providers()
    if provider not in there:
        raise RuntimeError(f"onnxruntime has no {provider}; it has {', '.join(there)}")
    options = onnxruntime.SessionOptions() if options is None else options
    level = _LEVELS[manifest["graph_optimization"]]
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    for key, value in manifest["config"].items():
        options.add_session_config_entry(key, value)
    told = {**manifest["provider_options"], **dict.fromkeys(manifest["folder_options"], str(HERE))}
    chain = [(provider, told), *([] if provider == CPU else [(CPU, {})])]
    session = onnxruntime.InferenceSession(
        str(HERE / manifest["file"]), options, providers=chain, enable_fallback=0
    )
    if session.get_providers()[0] != provider:
        raise RuntimeError(f"{provider} did not load; see onnxruntime's own messages")
    return session


def read_manifest() -> dict[str, Any]:
    """What manifest.json says."""
    found: dict[str, Any] = json.loads((HERE / "manifest.json").read_text(encoding="utf-8"))
    return found


def check_machine(made_for: dict[str, Any], manifest: dict[str, Any], version: str) -> None:
    """Refuse another kind of machine; warn where it can't be told, or onnxruntime is another.

    Args:
        made_for: The manifest's: machine, cpu, flags.
        manifest: All of it.
        version: onnxruntime's, here.

    Raises:
        OtherMachineError: The architecture or the CPU's instructions are not those.
    """
    fix = f"open the portable model of variant '{manifest['variant']}', or build it here"
    machine = platform.machine()
    if machine != made_for["machine"]:
        raise OtherMachineError(
            f"{manifest['file']} was made for {made_for['machine']}; this is {machine}: {fix}"
        )
    here = cpu_flags()
    if here is None:
        warnings.warn(f"this CPU can't be told from {made_for['cpu']}: {fix}", stacklevel=3)
    else:
        differing = [flag for flag, had in made_for["flags"].items() if had != (flag in here)]
        if differing:
            told = ", ".join(
                f"{'without' if made_for['flags'][flag] else 'with'} {flag}" for flag in differing
            )
            raise OtherMachineError(
                f"{manifest['file']} was made for {made_for['cpu']}; this CPU is {told}: {fix}"
            )
    made_by = manifest["versions"]["onnxruntime"]
    if version != made_by:
        warnings.warn(
            f"{manifest['file']} was made by onnxruntime {made_by}, this is {version}: {fix}",
            stacklevel=3,
        )


def cpu_flags(path: str = "/proc/cpuinfo") -> set[str] | None:
    """The CPU's instruction set flags, as Linux names them; None where it does not tell."""
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name.strip() in {"flags", "Features"}:
                    return set(value.split())
    except OSError:
        pass
    return None


def size_of(dimension: int | str, sizes: dict[str, int]) -> int:
    """The size of a number, an axis, or a sum of both (`past + sequence`)."""
    parts = str(dimension).split(" + ")
    return sum(int(part) if part.isdecimal() else sizes.get(part, 1) for part in parts)


def rule_of(axis: dict[str, int]) -> str:
    """Which sizes an axis of the manifest's takes."""
    step = axis["multiple_of"]
    return f"{axis['min']} to {axis['max']}" + (f", a multiple of {step}" if step > 1 else "")


def ones(dtype: str, shape: list[int]) -> Any:
    """What `session.run` takes: an array, or an OrtValue where numpy lacks the dtype.

    Args:
        dtype: As the manifest names it; strings are "1".
        shape: Sizes, outermost first.
    """
    import numpy as np
    import onnxruntime

    if dtype == "string":
        return np.full(shape, "1", object)
    if dtype != "bfloat16":
        return np.ones(shape, dtype)
    bits: Any = np.full(shape, 0x3F80, np.uint16)  # the upper half of float32's 1.0
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 16)


def main() -> None:
    """Show what the model takes and gives, and run it once on ones."""
    session = load()
    manifest = read_manifest()
    sizes = {name: axis["example"] for name, axis in manifest["dynamic_axes"].items()}
    feeds = {}
    for each in manifest["inputs"]:
        shape = [size_of(n, sizes) for n in each["shape"]]
        feeds[each["name"]] = ones(each["dtype"], shape)
        print("input ", each["name"], each["dtype"], each["shape"])
    for name, axis in manifest["dynamic_axes"].items():
        print("axis  ", name, rule_of(axis))
    print("runs on", session.get_providers()[0])
    for value, array in zip(session.get_outputs(), session.run(None, feeds), strict=True):
        print("output", value.name, array.dtype, list(array.shape))


if __name__ == "__main__":
    main()
