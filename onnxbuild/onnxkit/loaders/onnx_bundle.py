"""Open the model in this folder with ONNX Runtime, as its manifest says.

    from load import load
    session = load()          # the first provider that is there and loads, in the recipe's order
    session = load("cuda")    # that target, or a LoadError
    outputs = session.run(None, {"input": array})

Needs onnxruntime alone. `python load.py [TARGET]` prints inputs and outputs and runs once.
Each target has its own session settings; `load(session={"intra_op_threads": 1})` puts others over
them. `config` and `free_dimensions` are merged entry by entry, and None removes an entry.
Where the manifest names the machine that the model was made for, another kind of machine is refused:
the layouts in the model would be read as this machine's, and give wrong numbers or none.
"""

from __future__ import annotations

import platform
import sys
import warnings
from typing import Any

from onnxbuild.host.cpu import VNNI
from onnxbuild.onnxkit.loaders.shared import (
    HERE,
    LoadError,
    check_machine,
    cpu_flags,
    example_shapes,
    read_manifest,
)

_CPU = "CPUExecutionProvider"
_UNSIGNED = "session.x64quantprecision"
"""Config entry that turns signed weights into unsigned ones, whose sums never saturate."""

_SHARED = "Attempt to replace the existing tensor"
_SHARED_REASON = (
    f"onnxruntime can't open this model with {_UNSIGNED} 1, which keeps sums of 8-bit products from "
    "saturating on a CPU without VNNI or AMX: two of its nodes share a weight. Build it with "
    "`reduce_range: pairs`, or load(session={'config': {'"
    + _UNSIGNED
    + "': '0'}}) to let sums saturate"
)

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
_WORDS = {
    "graph_optimization": list(_LEVELS),
    "execution_mode": ["sequential", "parallel"],
    "spinning": list(_SPINNING),
}
"""Values of the settings that are words."""


def load(target: str = "", session: dict[str, Any] | None = None, *, options: Any = None) -> Any:
    """Return an onnxruntime.InferenceSession, never on another provider than was asked for.

    Args:
        target: One of the manifest's; empty for the first of all providers that loads.
        session: Settings over those that the manifest has for the target, see `merged`.
        options: An onnxruntime.SessionOptions with your own threads and the like. It gets the
            graph optimization level and the config entries alone.

    Raises:
        OtherMachineError: The model was made for another kind of machine.
        LoadError: There is no such target, setting or axis, or none of the providers loads.
    """
    import onnxruntime

    manifest = read_manifest()
    check_machine(manifest, "onnxruntime", onnxruntime.__version__)
    targets = manifest["targets"]
    if target and target not in targets:
        raise LoadError(f"there is no target '{target}'; there are {list(targets)}")
    check_axes(manifest.get("dynamic_axes", {}), session or {})
    bound = (
        "providers" not in manifest
    )  # made for one target: no provider may stand in for its own
    target = next(iter(targets)) if bound else target
    chain = targets[target]["chain"] if target else manifest["providers"]
    owners = {each["name"]: target or each["target"] for each in chain}
    there = onnxruntime.get_available_providers()
    folders = dict.fromkeys(manifest.get("folder_options", ()), str(HERE))
    left = [(each["name"], each["options"] | folders) for each in chain if each["name"] in there]
    reasons = [f"has no {each['name']}" for each in chain if each["name"] not in there]
    while left:
        settings = merged(targets[owners[left[0][0]]]["session"], session or {})
        config = settings["config"]
        if manifest.get("sums_may_saturate") and _UNSIGNED not in config and adds_in_16_bits():
            settings["config"] = config = {**config, **_without_saturation()}
        choices, opened = _choices(left), None
        for providers in choices:
            is_last = providers is choices[-1]
            try:
                opened = onnxruntime.InferenceSession(
                    str(HERE / manifest["file"]),
                    session_options(settings, options),
                    providers=providers,
                    enable_fallback=is_last and not bound,
                )
                break
            except Exception as error:
                if not is_last:
                    continue
                if _SHARED in str(error) and config.get(_UNSIGNED) in {1, "1"}:
                    raise LoadError(_SHARED_REASON) from error
                if len(left) == 1 or left[0][0] == _CPU:
                    raise
                if left[0][0] not in str(error) and "TensorRT" not in str(error):
                    raise
        if opened is not None and left[0][0] in opened.get_providers():
            return opened
        reasons.append(f"can't load {left[0][0]}")
        left = left[1:]
    raise LoadError(f"onnxruntime {onnxruntime.__version__} {', and '.join(reasons)}")


def _choices(chain: list[Any]) -> list[list[Any]]:
    """Return the chains to open a session with, so that the first provider takes nodes first.

    These are all, and without those between it and the CPU: ONNX Runtime takes its own choice of providers, CUDA
    before the CPU, where one of them does not load. The CPU leaves no nodes to those behind it.
    """
    names = [name for name, _ in chain]
    every = chain[: names.index(_CPU) + 1] if _CPU in names else chain
    few = [each for each in every if each is every[0] or each[0] == _CPU]
    return [every, few] if len(few) < len(every) else [every]


def merged(own: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return a target's settings with a user's over them.

    Args:
        own: The target's, as in the manifest.
        given: The user's. Settings that are left out stay, and so do entries of `config` and
            `free_dimensions`; an entry that is None is removed.

    Raises:
        LoadError: There is no such setting, or it has no such value.
    """
    unknown = sorted(set(given) - set(own))
    if unknown:
        raise LoadError(f"there is no session setting '{unknown[0]}'; there are {sorted(own)}")
    for name in sorted(_WORDS.keys() & given.keys()):
        if given[name] not in _WORDS[name]:
            raise LoadError(f"'{name}' is {given[name]!r}; expected one of {_WORDS[name]}")
    settings = {**own, **given}
    for name in ("config", "free_dimensions"):
        entries = {**own[name], **(given.get(name) or {})}
        settings[name] = {key: value for key, value in entries.items() if value is not None}
    return settings


def check_axes(axes: dict[str, Any], given: dict[str, Any]) -> None:
    """Refuse a size for an axis that the model does not have; ONNX Runtime would leave it out unsaid.

    Args:
        axes: The manifest's dynamic axes.
        given: The user's settings.

    Raises:
        LoadError: `free_dimensions` names another one.
    """
    unknown = sorted(set(given.get("free_dimensions") or {}) - set(axes))
    if unknown:
        raise LoadError(f"there is no dynamic axis '{unknown[0]}'; there are {sorted(axes)}")


def adds_in_16_bits(path: str = "/proc/cpuinfo") -> bool:
    """Return whether this is an x86 CPU without VNNI or AMX, whose sums of 8-bit products saturate.

    Args:
        path: Where Linux lists the CPU's flags; False where it does not.
    """
    flags = cpu_flags(path)
    return platform.machine() in {"x86_64", "AMD64"} and flags is not None and not flags & VNNI


def _without_saturation() -> dict[str, str]:
    warnings.warn(
        "this CPU has neither VNNI nor AMX: signed weights are taken as unsigned ones, so that no "
        "sum saturates, and the model runs slower than it need; a recipe with "
        "`target: {cpu: avx2}` makes one for this CPU",
        stacklevel=3,
    )
    return {_UNSIGNED: "1"}


def session_options(settings: dict[str, Any], given: Any = None) -> Any:
    """Return the onnxruntime.SessionOptions for the settings in a manifest's `session`.

    Args:
        settings: All of them.
        given: SessionOptions that keep all but the graph optimization level and the config entries.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions() if given is None else given
    level = _LEVELS[settings["graph_optimization"]]
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    config = settings["config"]
    if given is None:
        modes = onnxruntime.ExecutionMode
        options.execution_mode = (
            modes.ORT_PARALLEL
            if settings["execution_mode"] == "parallel"
            else modes.ORT_SEQUENTIAL
        )
        options.intra_op_num_threads = settings["intra_op_threads"]
        options.inter_op_num_threads = settings["inter_op_threads"]
        options.enable_mem_pattern = settings["memory_pattern"]
        options.enable_cpu_mem_arena = settings["cpu_arena"]
        options.use_deterministic_compute = settings["deterministic_compute"]
        for axis, size in settings["free_dimensions"].items():
            options.add_free_dimension_override_by_name(axis, size)
        config = {**_SPINNING[settings["spinning"]], **config}
    for key, value in config.items():
        options.add_session_config_entry(key, str(value))
    return options


def rule_of(axis: dict[str, int]) -> str:
    """Return the sizes that an axis of the manifest takes, in words."""
    step = axis["multiple_of"]
    return f"{axis['min']} to {axis['max']}" + (f", a multiple of {step}" if step > 1 else "")


def ones(dtype: str, shape: list[int]) -> Any:
    """Return ones for `session.run`: an array, or an OrtValue where numpy lacks the dtype.

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
    """Print what the model takes and gives, and run it once on ones."""
    try:
        session = load(sys.argv[1] if sys.argv[1:] else "")
    except LoadError as error:
        raise SystemExit(str(error)) from error
    manifest = read_manifest()
    shapes, feeds = example_shapes(manifest), {}
    for each in manifest["inputs"]:
        feeds[each["name"]] = ones(each["dtype"], shapes[each["name"]])
        print("input ", each["name"], each["dtype"], each["shape"])
    for name, axis in manifest["dynamic_axes"].items():
        print("axis  ", name, rule_of(axis))
    print("runs on", session.get_providers()[0])
    outputs = session.run(None, feeds)
    for value, array in zip(session.get_outputs(), outputs):  # noqa: B905 - Python 3.9 runs this, too
        print("output", value.name, array.dtype, list(array.shape))


if __name__ == "__main__":
    main()
