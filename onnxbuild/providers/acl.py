"""Arm Compute Library: Arm's CPUs."""

from __future__ import annotations

from onnxbuild.core.provider import Provider

PROVIDER = Provider(
    name="acl",
    full_name="ACLExecutionProvider",
)
