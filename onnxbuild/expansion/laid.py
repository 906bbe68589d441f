"""A report that is laid next to a bundle."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.graph import OutputRef


@dataclass(frozen=True, slots=True)
class Laid:
    """A report that is laid next to a bundle and enters none: what is measured, and what was found.

    Attributes:
        report: What a step gives.
        file: Its name next to the bundle.
        target: Name of the target that it was measured on; empty where that says nothing.
    """

    report: OutputRef
    file: str
    target: str = ""
