"""A target's execution providers, as Triton's ONNX Runtime backend takes them.

Source: triton-inference-server/onnxruntime_backend, README.md and src/onnxruntime.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnxbuild.onnxkit.bundles.manifest import ManifestProvider
from onnxbuild.onnxkit.triton.text_form import Message
from onnxbuild.providers import short_name

_DEVICE = "device_id"
_PRECISION = "precision_mode"
_PRECISIONS = {"trt_int8_enable": "INT8", "trt_fp16_enable": "FP16", "trt_bf16_enable": "BF16"}
"""TensorRT's flag -> the backend's word for it, of which it takes one."""

_RENAMED = {
    "trt_max_workspace_size": "max_workspace_size_bytes",
    "trt_int8_calibration_table_name": "int8_calibration_table_name",
    "trt_int8_use_native_calibration_table": "int8_use_native_calibration_table",
}
_SAME = frozenset(
    f"trt_{each}"
    for each in (
        "max_partition_iterations", "min_subgraph_size", "dla_enable", "dla_core", "engine_cache_enable",
        "engine_cache_path", "engine_cache_prefix", "dump_subgraphs", "force_sequential_engine_build",
        "context_memory_sharing_enable", "layer_norm_fp32_fallback", "timing_cache_enable",
        "timing_cache_path", "force_timing_cache", "detailed_build_log", "build_heuristics_enable",
        "sparsity_enable", "builder_optimization_level", "auxiliary_streams", "tactic_sources",
        "extra_plugin_lib_paths", "profile_min_shapes", "profile_max_shapes", "profile_opt_shapes",
        "cuda_graph_enable", "dump_ep_context_model", "ep_context_file_path", "ep_context_embed_mode",
    )
)  # fmt: skip
_OPENVINO_DEVICE = "device_type"


@dataclass(frozen=True, slots=True)
class Accelerators:
    """What a chain of providers is in config.pbtxt.

    Attributes:
        gpu: `gpu_execution_accelerator`, in order.
        cpu: `cpu_execution_accelerator`, in order.
        device: Where the chain runs: `gpu`, `cpu`, or `auto` if it is ONNX Runtime's CPU provider alone.
        gpus: The GPUs that its options name.
        dropped: What the backend has no place for.
    """

    gpu: tuple[Message, ...]
    cpu: tuple[Message, ...]
    device: str
    gpus: tuple[int, ...]
    dropped: tuple[str, ...]


def accelerators_of(chain: Sequence[ManifestProvider]) -> Accelerators:
    """Return what a target's chain is in config.pbtxt.

    Args:
        chain: In order of preference.
    """
    gpu: list[Message] = []
    cpu: list[Message] = []
    dropped: list[str] = []
    names = [short_name(each.name) for each in chain]
    for name, each in zip(names, chain, strict=True):
        options = {key: value for key, value in each.options.items() if key != _DEVICE}
        if name == "tensorrt":
            parameters, lost = _tensorrt(options)
            gpu.append(_accelerator(name, parameters))
            dropped += lost
        elif name == "cuda":
            if options:  # on a GPU it is there anyway
                gpu.append(_accelerator(name, options))
        elif name == "openvino":
            cpu.append(_accelerator(name, {}))
            is_cpu = options.get(_OPENVINO_DEVICE) == "CPU"
            dropped += sorted(options.keys() - ({_OPENVINO_DEVICE} if is_cpu else set()))
        elif name != "cpu":
            dropped.append(f"the provider {name}")
    device = "gpu" if {"tensorrt", "cuda"} & set(names) else "cpu" if cpu else "auto"
    on_gpu = (
        each for name, each in zip(names, chain, strict=True) if name in {"tensorrt", "cuda"}
    )
    gpus = dict.fromkeys(int(each.options[_DEVICE]) for each in on_gpu if _DEVICE in each.options)
    return Accelerators(tuple(gpu), tuple(cpu), device, tuple(gpus), tuple(dropped))


def _tensorrt(options: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """(the backend's parameters, options that it has none for); it fails on any that it does not know."""
    parameters, dropped = {}, []
    modes = [flag for flag in _PRECISIONS if options.get(flag) in {"1", "True"}]
    if modes:
        parameters[_PRECISION] = _PRECISIONS[modes[0]]
        dropped += modes[1:]
    for key, value in options.items():
        if key in _RENAMED or key in _SAME:
            parameters[_RENAMED.get(key, key)] = value
        elif key not in _PRECISIONS:
            dropped.append(key)
    return parameters, dropped


def _accelerator(name: str, parameters: Mapping[str, str]) -> Message:
    entries = (
        ("parameters", (("key", key), ("value", value))) for key, value in parameters.items()
    )
    return (("name", name), *entries)
