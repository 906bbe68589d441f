"""A first recipe as text: what is known of the model, a mark where something is to be filled in, and what can follow."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from onnxbuild.catalog import MODES
from onnxbuild.core.errors import RecipeError, RecipeErrors, UsageError
from onnxbuild.core.recipe import Location, Recipe
from onnxbuild.document.node import Member, Node, dotted, mapping
from onnxbuild.document.node import Path as KeyPath
from onnxbuild.expansion.feature import Mode
from onnxbuild.explanation.defaults import ordered
from onnxbuild.first_recipe.data_stubs import stub_lines
from onnxbuild.recipe.assemble import Loader, Understood
from onnxbuild.recipe.parts.keys import COMPONENTS
from onnxbuild.recipe.parts.parts import plain_mode
from onnxbuild.recipe.yaml.write import block_lines

HOLE = "FILL IN"
"""The mark of a line that the user must look at."""

_ABOUT: Mapping[str, str] = {
    "model": "The model. Paths are relative to this file.",
    "components": "Its models: each is built and judged by itself, as NAME@COMPONENT, and then all of them together.",
    "dummy_inputs": "What it takes. `low`, `high` and `fill` say which values its variants are compared on.",
    "state": "What one call gives and the next one takes.",
    "dynamic_axes": "The sizes that each axis may have: write those that you use.",
    "outputs": "What it gives, in this order; leave out what you do not need.",
}
_MORE = (
    "# What is built. More variants: take the `#` off a line; each is judged against the model."
)


@dataclasses.dataclass(frozen=True, slots=True)
class FirstRecipe:
    """A recipe's text and what is said of it.

    Attributes:
        text: The file.
        recipes: What it is read as: one, or each component.
        holes: Lines to fill in, counted from 1.
    """

    text: str
    recipes: tuple[Recipe, ...]
    holes: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Reader:
    """Reads recipes that are not written yet.

    Attributes:
        file: Where it will be, absolute.
        project: The project's root, absolute.
        environment: The variables that recipes may name.
    """

    file: Path
    project: Path
    environment: Mapping[str, str]

    @property
    def stubs(self) -> Path:
        """The file of stubs of the user's data, next to the recipe."""
        return self.file.with_name(f"{self.file.stem.replace('-', '_')}_data.py")

    @property
    def code(self) -> Path:
        """The file of a draft's code, next to the recipe."""
        return self.file.with_name(f"{self.file.stem.replace('-', '_')}_pipeline.py")

    def read(self, text: str) -> list[Understood]:
        """The recipe and the tree that it was made of, or those of each component.

        Raises:
            UsageError: The first of its faults.
        """
        understood: list[Understood] = []
        try:
            Loader(self.project, self.environment, understood).load(self.file, text.encode(), {})
        except RecipeErrors as errors:
            raise UsageError(errors.faults[0].what, fix=errors.faults[0].fix) from errors
        return understood

    def faults(self, text: str) -> tuple[RecipeError, ...]:
        """Return the faults of a recipe."""
        try:
            Loader(self.project, self.environment).load(self.file, text.encode(), {})
        except RecipeErrors as errors:
            return errors.faults
        return ()


def placed(value: Any, said: Mapping[str, str], path: KeyPath = ()) -> Node:
    """A node for a JSON value whose places are what is said of it, the nearest above it.

    Args:
        value: Mappings, lists and scalars.
        said: Dotted key -> the text.
        path: Where the value stands.
    """
    above = (said.get(dotted(path[:n])) for n in range(len(path), 0, -1))
    at = Location(next(filter(None, above), ""), 0, 0)
    if isinstance(value, Mapping):
        members = {k: Member(at, placed(v, said, (*path, k))) for k, v in value.items()}
        return mapping(members, at)
    if isinstance(value, (list, tuple)):
        return Node(at, tuple(placed(v, said, path) for v in value))
    return Node(at, value)


def first_recipe(
    reader: Reader, head: str, root: Node, comment: Callable[[Location], str]
) -> FirstRecipe:
    """The recipe of a tree, with comments that teach, read once more as it will be.

    Args:
        root: Without `quantization`.
        comment: What to say of a value's place.

    Raises:
        UsageError: It has a fault.
    """
    plain = plain_mode()
    known = "".join(f"{line}\n" for line in _known(root, comment))
    variants = f"quantization:\n  {plain.precision}: {plain.name}\n"
    lines = [f"# {head}", *known.splitlines(), "", _MORE, *variants.splitlines()]
    lines += [f"  # {line}" for line in _other_variants(reader, known, plain)]
    if COMPONENTS not in root.members:
        lines += stub_lines(reader.stubs.name)
    text = "".join(f"{line}\n" for line in lines)
    recipes = tuple(each.recipe for each in reader.read(text))
    holes = tuple(n for n, line in enumerate(lines, 1) if f"# {HOLE}:" in line)
    return FirstRecipe(text, recipes, holes)


def _known(root: Node, comment: Callable[[Location], str]) -> Iterator[str]:
    for key, member in ordered(root).members.items():
        if key in _ABOUT:
            yield ""
            yield f"# {_ABOUT[key]}"
        yield from block_lines(mapping({key: member}, member.at), comment)


def _other_variants(reader: Reader, known: str, plain: Mode) -> Iterator[str]:
    """Yield a line for each mode that the recipe may have next to the plain one, and what it needs besides."""
    names = {plain.precision}
    for mode in MODES.values():
        if mode.is_plain:
            continue
        name = mode.precision if mode.precision not in names else f"{mode.precision}-{mode.name}"
        names.add(name)
        line = f"{name}: {mode.name}"
        both = f"{plain.precision}: {plain.name}, {line}"
        faults = reader.faults(f"{known}quantization: {{{both}}}\n")
        needed = "; ".join(dict.fromkeys(each.fix for each in faults))
        needed = needed.replace("FILE.py:CALLABLE", f"{reader.stubs.name}:samples")
        yield line + (f"  # needs more: {needed}" if needed else "")
