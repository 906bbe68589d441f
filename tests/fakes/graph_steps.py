"""Steps of a recipe's graph, run one after the other in the test's own process."""

from collections.abc import Mapping
from pathlib import Path

from onnxbuild.catalog import CATALOG
from onnxbuild.core.graph import Graph
from onnxbuild.core.step import Outcome
from onnxbuild.host.host import HostFacts
from onnxbuild.recipe.load import load_recipes
from onnxbuild.resolver import resolve
from tests.fakes.step_context import run_step


class GraphSteps:
    """A recipe's steps, each of which runs when its output is asked for, and once."""

    def __init__(self, recipe: Path, folder: Path) -> None:
        loaded = load_recipes(recipe, project=recipe.parent)
        self.recipes = loaded.recipes
        self.graph: Graph = resolve(loaded.recipes, HostFacts("x86_64", frozenset()))
        self._folder = folder
        self._done: dict[str, Path] = {}

    def inputs(self, step: str) -> dict[str, Path]:
        """The folders of a step's inputs."""
        return {
            name: self.output(each.step, each.output)
            for name, each in self.graph.steps[step].inputs.items()
        }

    def output(self, step: str, name: str) -> Path:
        """The folder of an output."""
        if step not in self._done:
            self.run(step)
        return self._done[step] / "out" / name

    def run(self, step: str, **other: Path) -> Outcome:
        """Run a step; `other` are inputs in place of its own, `__` for `/` in their names."""
        given: Mapping[str, Path] = {key.replace("__", "/"): path for key, path in other.items()}
        kind = CATALOG[self.graph.steps[step].kind]
        inputs = {**self.inputs(step), **given}
        folder = self._folder / str(len(list(self._folder.iterdir())))
        outcome, _ = run_step(kind, self.graph.steps[step].params, folder, inputs)
        if not given:
            self._done[step] = folder
        return outcome
