"""What a recipe may ask to have done before a model is loaded: the section `ahead_of_time`."""

from __future__ import annotations

from collections.abc import Iterable
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


@dataclass(frozen=True, slots=True)
class AheadOfTimeOptions:
    """Ahead-of-time models to make, each kept apart from the portable model."""

    variants: tuple[str, ...] = option((), help="variants that it is done for; none named: all")
    ort: OrtFormatOptions | None = option(
        None, help="`{}` or options: the variant as `.ort`, in VARIANT-ort/"
    )
    optimized: OptimizedOptions | None = option(
        None, help="`{}`: the graph as optimized for this CPU, in VARIANT-optimized/"
    )
    compiled: CompiledOptions | None = option(
        None, help="what a provider has compiled, in VARIANT-compiled/"
    )
    tensorrt: EngineOptions | None = option(
        None, help="`{}` or options: TensorRT's caches, in VARIANT-tensorrt/"
    )
    load_times: bool = option(
        True, help="measure how long each of them takes to load, compared with the portable model"
    )

    @property
    def asked(self) -> tuple[str, ...]:
        """What is to be made, by its key."""
        return tuple(kind for kind in KINDS if getattr(self, kind) is not None)

    def folders(self, variants: Iterable[str]) -> tuple[str, ...]:
        """The folders of the ahead-of-time models, besides those of a recipe's variants."""
        chosen = [name for name in variants if not self.variants or name in self.variants]
        return tuple(f"{name}-{kind}" for name in chosen for kind in self.asked)


KINDS = ("ort", "optimized", "compiled", "tensorrt")
