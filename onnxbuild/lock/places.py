"""Files outside the project in a lock: each recipe of a file has folders of its own."""

from collections.abc import Iterable, Mapping

from onnxbuild.core.recipe import Recipe


class LockPlaces:
    """Names of a lock's paths.

    A step records `<model 1>/weights.bin`; which folder that is, its recipe says. A lock speaks of
    several recipes, and says `<NAME model 1>/weights.bin`.

    Args:
        recipes: Those of the lock's recipe file.

    Attributes:
        folders: Name of a folder, as in a lock -> where it is on this machine.
    """

    def __init__(self, recipes: Iterable[Recipe]) -> None:
        self._known: dict[str, set[str]] = {}
        self.folders: dict[str, str] = {}
        for recipe in recipes:
            known = self._known.setdefault(recipe.name, set())
            for entrypoint in (recipe.model, *recipe.entrypoints.values()):
                known.update(entrypoint.outside)
                for name, folder in entrypoint.outside.items():
                    self.folders[_qualified(recipe.name, name)] = folder

    def name(self, recipe: str, path: str) -> str:
        """A path that a step recorded, as in a lock.

        Args:
            recipe: Name of the step's recipe.
            path: As recorded (see core.places).
        """
        folder = path.partition("/")[0]
        return _qualified(recipe, path) if folder in self._known.get(recipe, ()) else path

    def named(self, recipe: str, digests: Mapping[str, str]) -> dict[str, str]:
        """`digests` of what a step of `recipe` recorded, under the names of a lock."""
        return {self.name(recipe, path): digest for path, digest in digests.items()}


def _qualified(recipe: str, path: str) -> str:
    return f"<{recipe} {path[1:]}"
