"""The families of deliverables: what a folder below out/ holds, and all that follows from that."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.environment import RUNTIME


@dataclass(frozen=True, slots=True)
class DeliverableFamily:
    """Family of a deliverable.

    Attributes:
        name: In JSON.
        runtime: The distribution that opens the model of such a bundle; empty for what is no bundle.
        is_portable: It is the variant itself, as ONNX for any machine.
        is_page: It is for people: nothing judges it, and no release has it.
    """

    name: str
    runtime: str = ""
    is_portable: bool = False
    is_page: bool = False


VARIANT = DeliverableFamily("variant", RUNTIME, is_portable=True)
ARTIFACT = DeliverableFamily("artifact", RUNTIME)
PROGRAM = DeliverableFamily("program", "torch")
PACKAGE = DeliverableFamily("package")
PAGE = DeliverableFamily("report", is_page=True)
FAMILIES = {each.name: each for each in (VARIANT, ARTIFACT, PROGRAM, PACKAGE, PAGE)}
