"""Providers of which a name and little more is known."""

from onnxbuild.core.provider import KEEP_ARENA, USE_ARENA, Provider, number

XNNPACK = Provider(
    name="xnnpack",
    full_name="XnnpackExecutionProvider",
    api_name="XNNPACK",
    aliases=("xnn",),
    options={"intra_op_num_threads": number("threads of its own pool", 1)},
    no_ep_context="it keeps nothing of what it makes of a graph",
)
"""XNNPACK: Google's kernels for the CPUs of phones and boards."""

DNNL = Provider(
    name="dnnl",
    full_name="DnnlExecutionProvider",
    aliases=("onednn", "mkldnn", "mkl"),
    options={USE_ARENA: KEEP_ARENA},
    no_ep_context="it keeps nothing of what it makes of a graph",
)
"""oneDNN: Intel's kernels for CPUs."""

ACL = Provider(name="acl", full_name="ACLExecutionProvider")
"""Arm Compute Library: Arm's CPUs."""

NNAPI = Provider(name="nnapi", full_name="NnapiExecutionProvider", aliases=("android",))
"""NNAPI: accelerators of Android phones."""

VITISAI = Provider(
    name="vitisai",
    full_name="VitisAIExecutionProvider",
    api_name="VitisAI",
    aliases=("vitis", "xilinx", "ryzenai"),
)
"""Vitis AI: AMD's NPUs and FPGAs."""

CANN = Provider(
    name="cann",
    full_name="CANNExecutionProvider",
    aliases=("ascend", "huawei"),
    distribution="onnxruntime-cann",
    distribution_note="from Huawei",
)
"""CANN: Huawei's Ascend NPUs."""

RKNPU = Provider(name="rknpu", full_name="RknpuExecutionProvider", aliases=("rockchip", "rknn"))
"""RKNPU: Rockchip's NPUs."""

AZURE = Provider(
    name="azure", full_name="AzureExecutionProvider", api_name="AZURE", distribution="onnxruntime"
)
"""Azure: models behind an endpoint in the cloud."""
