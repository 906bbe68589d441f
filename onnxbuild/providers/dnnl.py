"""oneDNN: Intel's kernels for CPUs."""

from __future__ import annotations

from onnxbuild.core.provider import KEEP_ARENA, USE_ARENA, Provider

PROVIDER = Provider(
    name="dnnl",
    full_name="DnnlExecutionProvider",
    aliases=("onednn", "mkldnn", "mkl"),
    options={USE_ARENA: KEEP_ARENA},
    no_ep_context="it keeps nothing of what it makes of a graph",
)
