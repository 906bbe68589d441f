"""Another Python than the one that builds, for targets that need another ONNX Runtime."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

RUNTIME = "onnxruntime"
"""Among a kind's `toolchain`: what a step that runs in another environment takes from there."""

INTERPRETER = "python"
"""In the place of a package's name: the environment's Python build."""

_NAME = re.compile(r"(?P<package>.+?) of (?P<form>list|interpreter) (?P<path>.+)")


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a target's ONNX Runtime is installed; one of the first two is given.

    Attributes:
        requirements: A list of pinned requirements, from which a virtual environment is made.
        python: An interpreter that is there. Both are paths relative to the project, or below a
            folder of core.places, or absolute.
        interpreter: The interpreter on this machine, absolute; known to running steps alone.
    """

    requirements: str = ""
    python: str = ""
    interpreter: str = field(default="", metadata={"local": True})

    def __str__(self) -> str:
        form, path = (
            ("list", self.requirements) if self.requirements else ("interpreter", self.python)
        )
        return f"{form} {path}"

    def package(self, name: str) -> str:
        """The name of one of its packages among those of a key."""
        return f"{name} of {self}"


def split_package(name: str) -> tuple[str, Environment] | None:
    """(package, environment) of a name that `Environment.package` gave; None if it is none."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    key = "requirements" if found["form"] == "list" else "python"
    return found["package"], Environment(**{key: found["path"]})


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An environment as it is on this machine.

    Attributes:
        path: Of the interpreter, absolute.
        folders: What it reads, as absolute folders; empty where it is not made yet.
        packages: What its ONNX Runtime is made of, as it enters keys: name -> digest.
        replaces: The name in a kind's `toolchain` in whose place they enter keys.
    """

    path: str
    folders: tuple[str, ...]
    packages: Mapping[str, str]
    replaces: str
