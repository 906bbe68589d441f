"""Open the model beside this file on the targets, and with the session settings, of its manifest.

    from load import load
    session = load()          # the first provider that is there and loads, in the recipe's order
    session = load("cuda")    # that target, or an error
    outputs = session.run(None, {"input": array})

Needs onnxruntime alone. `python load.py [TARGET]` shows inputs and outputs and runs once.
Each target has session settings of its own; `load(session={"intra_op_threads": 1})` puts others over
them. `config` and `free_dimensions` are merged entry by entry, and None takes an entry out.
"""

from __future__ import annotations

import json
import platform
import sys
import warnings
from pathlib import Path
from typing import Any

_UNSIGNED = "session.x64quantprecision"
"""Whether signed weights become unsigned ones as the model is opened, whose sums never saturate."""

_SHARED = "Attempt to replace the existing tensor"
_SHARED_REASON = (
    f"onnxruntime can't open this model with {_UNSIGNED} 1, which keeps sums of 8-bit products from "
    "saturating on a CPU without VNNI or AMX: two of its nodes share a weight. Build it with "
    "`reduce_range: pairs`, or load(session={'config': {'"
    + _UNSIGNED
    + "': '0'}}) to let sums saturate"
)

HERE = Path(__file__).resolve().parent

_LEVELS = {
    "disable": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
_SPINNING = {
    "allow": {},
    "stop": {"session.force_spinning_stop": "1"},
    "never": {"session.intra_op.allow_spinning": "0", "session.inter_op.allow_spinning": "0"},
}


def load(target: str = "", session: dict[str, Any] | None = None) -> Any:
    """An onnxruntime.InferenceSession; never on another provider than was asked for.

    Args:
        target: One of the manifest's; empty for the first of all providers that loads.
        session: Settings over those that the manifest has for the target, see `merged`.
    """
    import onnxruntime

    manifest = json.loads((HERE / "manifest.json").read_text(encoding="utf-8"))
    targets = manifest["targets"]
    if target and target not in targets:
        raise SystemExit(f"there is no target '{target}'; there are {list(targets)}")
    chain = targets[target]["chain"] if target else manifest["providers"]
    own = {each["name"]: target or each["target"] for each in chain}
    there = onnxruntime.get_available_providers()
    left = [(each["name"], each["options"]) for each in chain if each["name"] in there]
    reasons = [f"{each['name']} is not in it" for each in chain if each["name"] not in there]
    while left:
        told = merged(targets[own[left[0][0]]]["session"], session or {})
        if manifest["sums_may_saturate"] and _UNSIGNED not in told["config"] and adds_in_16_bits():
            told["config"] = {**told["config"], **_without_saturation()}
        options = session_options(told)
        try:
            opened = onnxruntime.InferenceSession(
                str(HERE / "model.onnx"), options, providers=left
            )
        except Exception as error:
            if _SHARED in str(error) and told["config"].get(_UNSIGNED) in {1, "1"}:
                raise SystemExit(_SHARED_REASON) from error
            if len(left) == 1 or (left[0][0] not in str(error) and "TensorRT" not in str(error)):
                raise
        else:
            if left[0][0] in opened.get_providers():
                return opened
        reasons.append(f"{left[0][0]} does not load")
        left = left[1:]
    raise SystemExit(f"onnxruntime {onnxruntime.__version__}: {', '.join(reasons)}")


def merged(own: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """A target's settings with a user's over them.

    Args:
        own: The target's, as in the manifest.
        given: The user's: what they leave out stays, entries of `config` and `free_dimensions` too;
            an entry that is None is taken out.
    """
    unknown = sorted(set(given) - set(own))
    if unknown:
        raise SystemExit(f"there is no session setting '{unknown[0]}'; there are {sorted(own)}")
    told = {**own, **given}
    for name in ("config", "free_dimensions"):
        entries = {**own[name], **(given.get(name) or {})}
        told[name] = {key: value for key, value in entries.items() if value is not None}
    return told


def adds_in_16_bits(facts: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this is an x86 CPU without VNNI or AMX, whose sums of 8-bit products saturate.

    Args:
        facts: As Linux tells them; elsewhere nothing is known, and False is the answer.
    """
    if platform.machine() not in {"x86_64", "AMD64"} or not facts.exists():
        return False
    flags = set(facts.read_text(encoding="utf-8").split())
    return not flags & {"avx512_vnni", "avx_vnni", "amx_int8"}


def _without_saturation() -> dict[str, str]:
    warnings.warn(
        "this CPU has neither VNNI nor AMX: signed weights are taken as unsigned ones, so that no "
        "sum saturates, and the model runs slower than it need; a recipe with "
        "`target: {cpu: avx2}` makes one for this CPU",
        stacklevel=3,
    )
    return {_UNSIGNED: "1"}


def session_options(told: dict[str, Any]) -> Any:
    """The onnxruntime.SessionOptions for the settings in a manifest's `session`."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    modes = onnxruntime.ExecutionMode
    options.graph_optimization_level = getattr(levels, _LEVELS[told["graph_optimization"]])
    options.execution_mode = (
        modes.ORT_PARALLEL if told["execution_mode"] == "parallel" else modes.ORT_SEQUENTIAL
    )
    options.intra_op_num_threads = told["intra_op_threads"]
    options.inter_op_num_threads = told["inter_op_threads"]
    options.enable_mem_pattern = told["memory_pattern"]
    options.enable_cpu_mem_arena = told["cpu_arena"]
    options.use_deterministic_compute = told["deterministic_compute"]
    for axis, size in told["free_dimensions"].items():
        options.add_free_dimension_override_by_name(axis, size)
    for key, value in {**_SPINNING[told["spinning"]], **told["config"]}.items():
        options.add_session_config_entry(key, str(value))
    return options


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
    session = load(sys.argv[1] if sys.argv[1:] else "")
    manifest = json.loads((HERE / "manifest.json").read_text(encoding="utf-8"))
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
