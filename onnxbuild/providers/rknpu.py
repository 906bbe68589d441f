"""RKNPU: Rockchip's NPUs."""

from __future__ import annotations

from onnxbuild.core.provider import Provider

PROVIDER = Provider(
    name="rknpu",
    full_name="RknpuExecutionProvider",
    aliases=("rockchip", "rknn"),
)
