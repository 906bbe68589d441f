"""Azure: models behind an endpoint in the cloud."""

from __future__ import annotations

from onnxbuild.core.provider import Provider

PROVIDER = Provider(
    name="azure",
    full_name="AzureExecutionProvider",
    api_name="AZURE",
    distribution="onnxruntime",
)
