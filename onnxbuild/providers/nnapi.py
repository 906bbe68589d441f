"""NNAPI: accelerators of Android phones."""

from __future__ import annotations

from onnxbuild.core.provider import Provider

PROVIDER = Provider(
    name="nnapi",
    full_name="NnapiExecutionProvider",
    aliases=("android",),
)
