"""Environments of steps beyond the Python that builds: with a target's ONNX Runtime, a framework, or npm's packages."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

RUNTIME = "onnxruntime"
"""Among a kind's `toolchain`: what a step that runs in another environment takes from there."""

BUILT_IN = "<onnxbuild>"
"""Begins the path of a list that comes with this program: its own folder (see core.places)."""

INTERPRETER = "python"
"""Name, in the place of a package's, of an environment's Python build."""

NPM = "npm"
"""Among a kind's `toolchain`: the packages of its environment, which npm installs."""

NODE = "node"
"""Name, in the place of a package's, of the Node that runs npm's packages. Among an environment's `needs`, too."""

_NAME = re.compile(r"(?P<package>.+?) of (?P<form>list|interpreter|npm list) (?P<path>.+)")


@dataclass(frozen=True, slots=True)
class Environment:
    """Environment in which a target's ONNX Runtime, a model's framework, or npm's packages are installed.

    One of `requirements`, `python` and `npm` is given: a path relative to the project, or below a folder
    of core.places, or absolute.

    Attributes:
        requirements: A list of pinned requirements, from which a virtual environment is made.
        python: An interpreter that is there.
        npm: A package-lock.json, from which a folder with node_modules is made.
        interpreter: The interpreter on this machine, absolute; known to running steps alone. Node's
            program for npm's packages: empty where it is missing, or not needed.
        folder: Folder of node_modules, absolute; known to running steps alone. Empty where it could not
            be made.
        needs: Distributions of a framework that must be there, the framework first: all that is
            installed enters keys then. Empty where it is ONNX Runtime that is needed: that and what it
            requires enter. NODE where Node runs npm's packages: the step then does without both, and says
            that it is skipped.
    """

    requirements: str = ""
    python: str = ""
    npm: str = field(default="", metadata={"sparse": True})
    interpreter: str = field(default="", metadata={"local": True})
    folder: str = field(default="", metadata={"local": True})
    needs: tuple[str, ...] = field(default=(), metadata={"local": True})

    def __str__(self) -> str:
        if self.npm:
            return f"npm list {self.npm}"
        form, path = (
            ("list", self.requirements) if self.requirements else ("interpreter", self.python)
        )
        return f"{form} {path}"

    @property
    def replaces(self) -> str:
        """The name in a kind's `toolchain` in whose place its packages enter keys."""
        if self.npm:
            return NPM
        return self.needs[0] if self.needs else RUNTIME

    @property
    def is_optional(self) -> bool:
        """Whether steps do without it where it can't be made."""
        return bool(self.npm) and NODE in self.needs

    def package(self, name: str) -> str:
        """The name of one of its packages among those of a key."""
        return f"{name} of {self}"


def split_package(name: str) -> tuple[str, Environment] | None:
    """(package, environment) of a name that `Environment.package` gave; None if it is none."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    path = found["path"]
    environments = {
        "list": Environment(requirements=path),
        "interpreter": Environment(python=path),
        "npm list": Environment(npm=path),
    }
    return found["package"], environments[found["form"]]


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An environment as it is on this machine.

    Attributes:
        path: Of the interpreter, absolute; empty where npm's packages have none.
        folders: What it reads, as absolute folders; empty where it is not made yet.
        packages: What its ONNX Runtime or framework is made of, as it enters keys: name -> digest.
        replaces: The name in a kind's `toolchain` in whose place they enter keys.
        folder: Folder of node_modules, absolute; empty where there is none.
    """

    path: str
    folders: tuple[str, ...]
    packages: Mapping[str, str]
    replaces: str
    folder: str = ""
