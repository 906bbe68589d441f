"""The variables that a step sees."""

from __future__ import annotations

from collections.abc import Mapping

_PASSED_ON = (
    "PATH",
    "HOME",
    "USER",
    "LD_LIBRARY_PATH",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
)


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child: a few variables passed on, the rest fixed."""
    kept = {name: environment[name] for name in _PASSED_ON if name in environment}
    return {
        **kept,
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "ORT_DISABLE_TELEMETRY": "1",
    }
