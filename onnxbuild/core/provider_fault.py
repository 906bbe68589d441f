"""Faults of an execution provider that does not load, and what a provider declares to find their causes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
