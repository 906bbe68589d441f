"""One option of an execution provider: its type, range and words, and what it decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
