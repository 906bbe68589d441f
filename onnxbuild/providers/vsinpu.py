"""VSINPU: VeriSilicon's NPUs in boards such as the i.MX 8M Plus, by TIM-VX.

Operators and options are those of ONNX Runtime's sources (onnxruntime/core/providers/vsinpu).
"""

from onnxbuild.core.provider import Provider

PROVIDER = Provider(
    name="vsinpu",
    full_name="VSINPUExecutionProvider",
    aliases=("verisilicon", "vivante", "tim-vx", "timvx"),
    options={},
    remarks={
        "dynamic": (
            "VSINPU has neither DynamicQuantizeLinear nor MatMulInteger: these nodes fall to the CPU; "
            "use `mode: static`"
        ),
        "weight_only": "VSINPU has no MatMulNBits: these nodes fall to the CPU",
    },
    no_ep_context="it keeps nothing of what it makes of a graph",
)
