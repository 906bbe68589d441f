"""An execution provider of ONNX Runtime: its options, its vendor's processors, the faults of one that does not load."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from onnxbuild.core.recipe import Axis, DummyInput


@dataclass(frozen=True, slots=True)
class Vendor:
    """Vendor of the processors that a provider needs, and how Linux shows them.

    A new vendor's device files also belong in `DEVICE_FILES` of adapters/machine.py, which is read before
    anything else is imported: a test compares them.

    Attributes:
        name: In messages.
        pci: Its number on the PCI bus.
        devices: Patterns of its processors' device files, below /dev.
        drivers: Paths of which one is there when its kernel driver is loaded.
        variable: The environment variable that hides devices.
        lists: The command that lists them.
        container: How a container is started with its devices.
        checks: The command that shows whether the driver works; empty for none.
    """

    name: str
    pci: str
    devices: tuple[str, ...]
    drivers: tuple[str, ...]
    variable: str
    lists: str
    container: str
    checks: str = ""


# Types and ranges: https://onnxruntime.ai/docs/execution-providers/, a page each provider.

_NUMERIC = ("0", "1")
CAPITALIZED = ("False", "True")
"""Spelling of (false, true) in some providers' options."""


@dataclass(frozen=True, slots=True)
class ProviderOption:
    """One option of one provider.

    Attributes:
        type: What a recipe writes.
        help: One line.
        minimum: Least number.
        maximum: Greatest number.
        choices: All the words that it takes; empty for any.
        spelling: How ONNX Runtime spells (false, true).
        picks_device: It names the device, so it decides whether the provider loads.
        names_file: It names a file, a folder or a library, or makes the provider write files.
    """

    type: Literal["boolean", "integer", "string"]
    help: str
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    spelling: tuple[str, str] = _NUMERIC
    picks_device: bool = False
    names_file: bool = False

    def written(self, value: object) -> str:
        """Return a value of the recipe as ONNX Runtime takes it."""
        return self.spelling[value] if isinstance(value, bool) else str(value)


def flag(
    text: str, *, spelling: tuple[str, str] = _NUMERIC, names_file: bool = False
) -> ProviderOption:
    """Declare an option that is true or false."""
    return ProviderOption("boolean", text, spelling=spelling, names_file=names_file)


def word(
    text: str, *choices: str, picks_device: bool = False, names_file: bool = False
) -> ProviderOption:
    """Declare an option that takes one of `choices`, or any text if there are none."""
    return ProviderOption(
        "string", text, choices=choices, picks_device=picks_device, names_file=names_file
    )


def path(text: str, *, picks_device: bool = False) -> ProviderOption:
    """Declare an option that names a file, a folder or a library."""
    return word(text, picks_device=picks_device, names_file=True)


def number(text: str, minimum: int = 0, maximum: int | None = None) -> ProviderOption:
    """Declare an option that takes a whole number."""
    return ProviderOption("integer", text, minimum, maximum)


DEVICE_ID = ProviderOption("integer", "which device, from 0", 0, picks_device=True)
MEMORY_LIMIT = number("most bytes of device memory for the arena", 1)
ARENA_EXTENSION = word(
    "how the arena grows: to a power of two, or by what is needed",
    "kNextPowerOfTwo",
    "kSameAsRequested",
)
USE_ARENA = "use_arena"
KEEP_ARENA = flag("keep freed memory for the next run")


Cause = Literal["package", "device", "driver", "library", "version", "device_id", "other"]


@dataclass(frozen=True, slots=True)
class ProviderFault:
    """One reason.

    Attributes:
        cause: `package`: not in this ONNX Runtime; `device`: no such processor here; `driver`: one
            without its driver; `library`: a shared library is missing; `version`: one is too old or
            too new; `device_id`: there is no device of that number; `other`: ONNX Runtime's words.
        what: One sentence, without a full stop.
        fix: What to type or to do.
    """

    cause: Cause
    what: str
    fix: str


@dataclass(frozen=True, slots=True)
class Symptom:
    """A text that ONNX Runtime or a vendor's library writes for one cause.

    Attributes:
        cause: What it means: `device`, `device_id` or `version`.
        pattern: A regular expression; letters of either case match.
    """

    cause: Cause
    pattern: str


@dataclass(frozen=True, slots=True)
class LibraryFix:
    """Instructions to install shared libraries.

    Attributes:
        prefixes: How the libraries' names begin.
        command: What to type or to do; empty where an extra brings them.
        distribution: The distribution of ONNX Runtime whose extra brings them.
        extra: That extra; several make one command.
    """

    prefixes: tuple[str, ...]
    command: str = ""
    distribution: str = ""
    extra: str = ""


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
            options: Those of its mode.
        """
        found = self.remarks.get(mode, "")
        return found if isinstance(found, str) else found(options)


def is_full_name(name: str) -> bool:
    """Return whether a name has the form of ONNX Runtime's: a newer one may know others than these."""
    return _FULL.fullmatch(name) is not None
