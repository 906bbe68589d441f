"""The environment variables that every step sees; read on every run, so it imports nothing."""

from collections.abc import Mapping

PASSED_ON = ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")

HEADERS_VARIABLE = "ORT_INCLUDE_DIR"
"""Names the folder of ONNX Runtime's C++ headers. No step sees it: the headers' content enters keys."""


def variables_of(host: Mapping[str, str]) -> dict[str, str]:
    """Return those of a host's facts that are such variables."""
    return {name: host[name] for name in PASSED_ON if name in host}
