"""QNN: Qualcomm's processors, above all their HTP."""

from onnxbuild.core.provider import DEVICE_ID, Provider, flag, number, path, word

_OPTIONS = {
    "backend_path": path("QNN's library, `libQnnHtp.so`; instead of backend_type", picks_device=True),
    "backend_type": word("which processor", "cpu", "gpu", "htp", "saver", "ir", picks_device=True),
    "device_id": DEVICE_ID,
    "soc_model": word("number of the chip; 0: unknown"),
    "htp_arch": word("generation of the HTP", "0", "68", "69", "73", "75", "81"),
    "htp_performance_mode": word(
        "speed against power", "default", "burst", "balanced", "high_performance",
        "sustained_high_performance", "high_power_saver", "low_balanced", "low_power_saver",
        "power_saver", "extreme_power_saver",
    ),
    "htp_graph_finalization_optimization_mode": number("how long to optimize", 0, 3),
    "enable_htp_fp16_precision": flag("compute fp32 models in fp16"),
    "offload_graph_io_quantization": flag("quantize inputs and outputs on the CPU"),
    "qnn_context_priority": word("of several", "low", "normal", "normal_high", "high"),
    "rpc_control_latency": number("microseconds that a call may wait"),
    "vtcm_mb": number("MB of on-chip memory", 1),
    "profiling_level": word("what is measured", "off", "basic", "detailed", "optrace"),
    "profiling_file_path": path("file for those measurements"),
}  # fmt: skip

PROVIDER = Provider(
    name="qnn",
    full_name="QNNExecutionProvider",
    api_name="QNN",
    aliases=("qualcomm", "snapdragon", "hexagon", "htp"),
    options=_OPTIONS,
    distribution="onnxruntime-qnn",
    distribution_note="on Qualcomm's processors",
    remarks={
        "dynamic": "its HTP runs models with QDQ nodes: use `mode: static`",
        "weight_only": "QNN has no MatMulNBits: these nodes fall to the CPU",
    },
    node_name="qnn",
    node_options={
        "backend_type": "backendType",
        "backend_path": "backendPath",
        "enable_htp_fp16_precision": "enableFp16Precision",
    },
)
