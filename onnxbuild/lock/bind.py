"""Find the lock that holds for each step of a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.graph import Graph, StepAddress
from onnxbuild.core.recipe import Recipe
from onnxbuild.host.host import HostFacts
from onnxbuild.lock.model import Lock
from onnxbuild.lock.text import lock_path, read_lock
from onnxbuild.project_folder import find_project
from onnxbuild.recipe.templates.extend import absolute
from onnxbuild.resolver import resolve


@dataclass(frozen=True, slots=True)
class BoundLock:
    """A lock and what it stands for in one run.

    Attributes:
        lock: As read.
        path: Its file, for messages.
        recipe: The recipe's file, for messages.
        recipe_name: The same, relative to the project's root.
        recipes: What the recipe file holds now.
        names: (step of the run, name of that step in the lock).
        addresses: Name of a step in the lock -> where it stands in the recipes.
        whole: All of the recipe file was asked for.
    """

    lock: Lock
    path: str
    recipe: str
    recipe_name: str
    recipes: tuple[Recipe, ...]
    names: tuple[tuple[str, str], ...]
    addresses: Mapping[str, StepAddress]
    whole: bool


def bind_locks(
    by_file: Mapping[Path, tuple[Recipe, ...]], joint: Graph, host: HostFacts, *, whole: bool
) -> tuple[BoundLock, ...]:
    """Read the lock of every recipe file of a run.

    Args:
        by_file: Recipe file -> what it holds.
        joint: The graph that is built.
        host: What it was resolved for.
        whole: All of it was asked for.

    Raises:
        UsageError: A lock is missing, or is none.
    """
    bound = []
    for path, recipes in by_file.items():
        lock = read_lock(path)
        own = resolve(recipes, host, choices=lock.choices)
        names = names_in_lock(own, joint)
        name = absolute(path).relative_to(find_project(path)).as_posix()
        shown = str(lock_path(path)), str(path), name
        bound.append(BoundLock(lock, *shown, recipes, names, own.addresses, whole))
    return tuple(bound)


def names_in_lock(own: Graph, joint: Graph) -> tuple[tuple[str, str], ...]:
    """(step of `joint`, its name in the lock) for all steps of a recipe file.

    Equal steps are one step, under the name of whichever comes first: other recipes or other
    variants next to it can change which that is. A lock has the names of its file's whole graph.

    Args:
        own: The whole graph of the file's recipes.
        joint: The graph that is built.
    """
    known = set(own.names())
    pairs = [(joint.resolve(n), own.resolve(n)) for n in joint.names() if n in known]
    return tuple(dict.fromkeys(pairs))
