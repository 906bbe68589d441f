"""Options of a recipe's section `ahead_of_time`: work that is done before a model is loaded."""

from dataclasses import dataclass
from typing import Literal

from onnxbuild.core.params import option


@dataclass(frozen=True, slots=True)
class OrtFormatOptions:
    """ONNX Runtime's own format, for its reduced builds on phones and boards."""

    platform: Literal["arm", "amd64"] = option(
        "arm", help="what it will run on; `amd64` takes layouts of this machine's CPU"
    )
    style: Literal["fixed", "runtime"] = option(
        "fixed",
        help="`fixed` is optimized once and for all; `runtime` keeps optimizations that ONNX Runtime "
        "replays for what NNAPI or CoreML leave to the CPU",
    )
    type_reduction: bool = option(
        True, help="the list of required operators names the element types of each, too"
    )


@dataclass(frozen=True, slots=True)
class OptimizedOptions:
    """ONNX with all that ONNX Runtime does at load done already, for this very CPU."""


@dataclass(frozen=True, slots=True)
class CompiledOptions:
    """ONNX with the nodes that a provider has compiled already (EPContext)."""

    provider: str = option(help="execution provider that compiles: openvino, qnn, tensorrt, ...")
    embed: bool = option(
        True, help="keep the compiled nodes inside model.onnx; else in a file next to it"
    )


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """TensorRT's engines and timing cache, for this very GPU, driver and TensorRT."""

    fp16: bool = option(False, help="let TensorRT choose fp16 kernels")
