"""DirectML: any GPU with DirectX 12, on Windows."""

from onnxbuild.core.provider import DEVICE_ID, Provider, flag, word

_OPTIONS = {
    "device_id": DEVICE_ID,
    "performance_preference": word(
        "which GPU of several", "default", "high_performance", "minimum_power"
    ),
    "device_filter": word("which processors", "gpu", "npu", "any", picks_device=True),
    "disable_metacommands": flag("leave the driver's own kernels out"),
}

PROVIDER = Provider(
    name="directml",
    full_name="DmlExecutionProvider",
    api_name="DML",
    aliases=("dml", "directx", "dx12", "windows"),
    options=_OPTIONS,
    memory="dml",
    distribution="onnxruntime-directml",
    distribution_note="on Windows",
    remarks={"dynamic": "dynamic INT8 falls to the CPU in part; use fp16"},
    no_ep_context="it keeps nothing of what it makes of a graph",
    node_name="dml",
    node_options={"device_id": "deviceId"},
)
