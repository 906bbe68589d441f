"""A provider that no ONNX Runtime has: targets that name it are skipped."""

from onnxbuild.core.provider import Provider, ProviderOption

PROVIDER = Provider(
    "toaster",
    "ToasterExecutionProvider",
    options={"browning": ProviderOption("integer", "how dark, 1 to 7", minimum=1, maximum=7)},
)
