"""ONNX Runtime's own kernels for CPUs (MLAS): in every package of it."""

from onnxbuild.core.provider import KEEP_ARENA, USE_ARENA, Provider
from onnxbuild.core.target import CPU

PROVIDER = Provider(
    name=CPU,
    full_name="CPUExecutionProvider",
    aliases=("x86", "arm", "mlas", "host"),
    options={USE_ARENA: KEEP_ARENA},
    remarks={
        "fp16": (
            "fp16 halves the size and gains no speed there: few of the CPU's kernels compute in it, "
            "the rest casts to fp32 and back"
        )
    },
    no_ep_context="its kernels run the nodes as they are",
    node_name="cpu",
)
