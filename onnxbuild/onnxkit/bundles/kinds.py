"""The kinds of bundles: the package that runs each, and what its readers must know of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnxbuild.onnxkit.loaders.script import Runtime


@dataclass(frozen=True, slots=True)
class BundleKind:
    """One kind.

    Attributes:
        runtime: The package that opens the model.
        runs_code: The model may do what any program may: whoever runs it trusts its maker.
    """

    runtime: Runtime
    runs_code: bool = False


ONNX = "onnx"

KINDS: Mapping[str, BundleKind] = {
    ONNX: BundleKind("onnxruntime"),
    "ort": BundleKind("onnxruntime"),
    "optimized": BundleKind("onnxruntime"),
    "compiled": BundleKind("onnxruntime", runs_code=True),
    "tensorrt": BundleKind("onnxruntime", runs_code=True),
    "torchscript": BundleKind("torch", runs_code=True),
    "torch-export": BundleKind("torch", runs_code=True),
    "aotinductor": BundleKind("torch", runs_code=True),
}
"""A bundle's `kind` in manifest.json -> what it means."""
