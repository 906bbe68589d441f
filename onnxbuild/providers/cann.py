"""CANN: Huawei's Ascend NPUs."""

from __future__ import annotations

from onnxbuild.core.provider import Provider

PROVIDER = Provider(
    name="cann",
    full_name="CANNExecutionProvider",
    aliases=("ascend", "huawei"),
    distribution="onnxruntime-cann",
    distribution_note="from Huawei",
)
