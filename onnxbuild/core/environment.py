"""Another Python than the one that builds: a target's ONNX Runtime is there, or the framework that converts a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

RUNTIME = "onnxruntime"
"""Among a kind's `toolchain`: what a step that runs in another environment takes from there."""

BUILT_IN = "<onnxbuild>"
"""Begins the path of a list that comes with this program: its own folder (see core.places)."""

INTERPRETER = "python"
"""In the place of a package's name: the environment's Python build."""

_NAME = re.compile(r"(?P<package>.+?) of (?P<form>list|interpreter) (?P<path>.+)")


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a target's ONNX Runtime, or a model's framework, is installed; one of the first two is given.

    Attributes:
        requirements: A list of pinned requirements, from which a virtual environment is made.
        python: An interpreter that is there. Both are paths relative to the project, or below a
            folder of core.places, or absolute.
        interpreter: The interpreter on this machine, absolute; known to running steps alone.
        needs: Distributions of a framework that must be there, the framework first: all that is
            installed enters keys then. Empty where it is ONNX Runtime that is needed: that and what it
            requires enter.
    """

    requirements: str = ""
    python: str = ""
    interpreter: str = field(default="", metadata={"local": True})
    needs: tuple[str, ...] = field(default=(), metadata={"local": True})

    def __str__(self) -> str:
        form, path = (
            ("list", self.requirements) if self.requirements else ("interpreter", self.python)
        )
        return f"{form} {path}"

    @property
    def replaces(self) -> str:
        """The name in a kind's `toolchain` in whose place its packages enter keys."""
        return self.needs[0] if self.needs else RUNTIME

    def package(self, name: str) -> str:
        """The name of one of its packages among those of a key."""
        return f"{name} of {self}"


def split_package(name: str) -> tuple[str, Environment] | None:
    """(package, environment) of a name that `Environment.package` gave; None if it is none."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    is_list = found["form"] == "list"
    environment = (
        Environment(requirements=found["path"]) if is_list else Environment(python=found["path"])
    )
    return found["package"], environment


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An environment as it is on this machine.

    Attributes:
        path: Of the interpreter, absolute.
        folders: What it reads, as absolute folders; empty where it is not made yet.
        packages: What its ONNX Runtime or framework is made of, as it enters keys: name -> digest.
        replaces: The name in a kind's `toolchain` in whose place they enter keys.
    """

    path: str
    folders: tuple[str, ...]
    packages: Mapping[str, str]
    replaces: str
