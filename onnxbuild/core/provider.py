"""An execution provider of ONNX Runtime: everything that a build has to know about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from onnxbuild.core.provider_fault import LibraryFix, Symptom
from onnxbuild.core.provider_option import ProviderOption
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.core.vendor import Vendor

_FULL = re.compile(r"[A-Za-z0-9_]+ExecutionProvider")
_PLAIN = ProviderOption("string", "")

Remark = str | Callable[[Any], str]
"""A sentence, or what makes one of a variant's options; empty for none."""


@dataclass(frozen=True, slots=True)
class Shorthand:
    """A flag of recipes that ONNX Runtime does not know: if it is true, it writes other options.

    Attributes:
        help: One line.
        expand: Options as written, the model's inputs, the ranges of its axes -> all options.
    """

    help: str
    expand: Callable[
        [Mapping[str, Any], Mapping[str, DummyInput], Mapping[str, Axis]], dict[str, Any]
    ]


@dataclass(frozen=True, slots=True)
class OptionGroup:
    """Options that are written all or not at all.

    Attributes:
        names: All of them.
        why: Ends the sentence that says which are missing.
        shorthand: What writes all of them.
    """

    names: tuple[str, ...]
    why: str
    shorthand: str


@dataclass(frozen=True, slots=True)
class TritonAccelerator:
    """Configuration of a provider in the ONNX Runtime backend of NVIDIA's Triton.

    Source: triton-inference-server/onnxruntime_backend, README.md and src/onnxruntime.cc.

    Attributes:
        device: Where it runs: `gpu` or `cpu`.
        parameters: Option -> the backend's name of it; None where it takes all options under their own names.
        modes: Flag -> the backend's word for it in the one parameter `mode`.
        mode: Name of that parameter.
        implied: Options that say what it does in any case.
        is_implied: Without parameters it needs no entry: it is in every session on that device.
    """

    device: Literal["gpu", "cpu"]
    parameters: Mapping[str, str] | None = None
    modes: Mapping[str, str] = field(default_factory=dict)
    mode: str = ""
    implied: Mapping[str, str] = field(default_factory=dict)
    is_implied: bool = False


@dataclass(frozen=True, slots=True)
class Provider:
    """One execution provider.

    Attributes:
        name: In recipes, targets and reports.
        full_name: ONNX Runtime's.
        api_name: In ONNX Runtime's APIs of C and C++, where they append a provider; empty if they can't.
        aliases: Words of other tools that mean it.
        options: Name -> option; None for a provider whose options are not listed: any are passed on.
        shorthands: Name -> flag that writes other options.
        groups: Options that are written all or not at all.
        vendor: Whose processors it needs; None if it also runs elsewhere, or that is not known.
        memory: ONNX Runtime's name of the memory that its inputs and outputs are bound to.
        distribution: The distribution of ONNX Runtime that has it; empty if none is known.
        distribution_note: Where that runs or comes from, after its name.
        removed: Why no ONNX Runtime has it any more, and what to write instead.
        library_distributions: How the names of the distributions begin that it loads libraries from.
        preload_dlls: Whether `onnxruntime.preload_dlls` finds its libraries.
        preloaded_libraries: Patterns of libraries in installed packages that are loaded before it.
        symptoms: Texts that say why it does not load, besides those of any library.
        requirement: Pattern of the text that names the versions that it needs, as its first group.
        libraries: How to install the libraries that it was linked with.
        remarks: Mode of quantization -> why a variant of it brings no benefit there.
        no_ep_context: Why it has no compiled models (EPContext); empty if it has, or that is not known.
        api_struct: Whether the APIs take its options as a struct of its own, and not by name.
        node_name: onnxruntime-node's name of it; empty if it has none.
        node_options: Option -> onnxruntime-node's name of it; it takes no others.
        triton: How Triton takes it; None if it has no place for it.
        drops_options: Whether ONNX Runtime's Python API opens a session again where it does not load, on its own
            choice of providers and without their options.
        compiles_for_gpu: Whether what it compiles holds for one model of GPU, one driver and one TensorRT.
    """

    name: str
    full_name: str
    api_name: str = ""
    aliases: tuple[str, ...] = ()
    options: Mapping[str, ProviderOption] | None = None
    shorthands: Mapping[str, Shorthand] = field(default_factory=dict)
    groups: tuple[OptionGroup, ...] = ()
    vendor: Vendor | None = None
    memory: str = "cpu"
    distribution: str = ""
    distribution_note: str = ""
    removed: str = ""
    library_distributions: tuple[str, ...] = ()
    preload_dlls: bool = False
    preloaded_libraries: tuple[str, ...] = ()
    symptoms: tuple[Symptom, ...] = ()
    requirement: str = ""
    libraries: tuple[LibraryFix, ...] = ()
    remarks: Mapping[str, Remark] = field(default_factory=dict)
    no_ep_context: str = ""
    drops_options: bool = False
    compiles_for_gpu: bool = False
    api_struct: bool = False
    node_name: str = ""
    node_options: Mapping[str, str] = field(default_factory=dict)
    triton: TritonAccelerator | None = None

    def written(self, options: Mapping[str, object]) -> dict[str, str]:
        """Return the options of a recipe as ONNX Runtime takes them."""
        known = self.options or {}
        return {name: known.get(name, _PLAIN).written(value) for name, value in options.items()}

    def remark(self, mode: str, options: object) -> str:
        """Return why a variant brings no benefit on this provider; empty if it may.

        Args:
            mode: The variant's.
            options: Those of its mode.
        """
        found = self.remarks.get(mode, "")
        return found if isinstance(found, str) else found(options)


def is_full_name(name: str) -> bool:
    """Return whether a name has the form of ONNX Runtime's: a newer one may know others than these."""
    return _FULL.fullmatch(name) is not None
