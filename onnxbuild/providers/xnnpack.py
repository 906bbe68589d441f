"""XNNPACK: Google's kernels for the CPUs of phones and boards."""

from __future__ import annotations

from onnxbuild.core.provider import Provider, number

PROVIDER = Provider(
    name="xnnpack",
    full_name="XnnpackExecutionProvider",
    api_name="XNNPACK",
    aliases=("xnn",),
    options={"intra_op_num_threads": number("threads of its own pool", 1)},
    no_ep_context="it keeps nothing of what it makes of a graph",
)
