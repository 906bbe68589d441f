"""Vitis AI: AMD's NPUs and FPGAs."""

from __future__ import annotations

from onnxbuild.core.provider import Provider

PROVIDER = Provider(
    name="vitisai",
    full_name="VitisAIExecutionProvider",
    api_name="VitisAI",
    aliases=("vitis", "xilinx", "ryzenai"),
)
