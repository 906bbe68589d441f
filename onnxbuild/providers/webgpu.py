"""WebGPU: any GPU that Dawn reaches by Vulkan, Direct3D 12 or Metal."""

from onnxbuild.core.provider import DEVICE_ID, Provider, flag, word

_OPTIONS = {
    "deviceId": DEVICE_ID,
    "dawnBackendType": word("graphics interface", "Vulkan", "D3D12"),
    "powerPreference": word("which GPU of several", "high-performance", "low-power"),
    "preferredLayout": word("of convolutions", "NHWC", "NCHW"),
    "enableGraphCapture": flag("capture the run: shapes must not change"),
    "forceCpuNodeNames": word("nodes for the CPU, one a line"),
    "validationMode": word("what WebGPU checks", "disabled", "wgpuOnly", "basic", "full"),
}

PROVIDER = Provider(
    name="webgpu",
    full_name="WebGpuExecutionProvider",
    api_name="WebGPU",
    aliases=("wgpu", "browser"),
    options=_OPTIONS,
    no_ep_context="its kernels run the nodes as they are",
    node_name="webgpu",
)
