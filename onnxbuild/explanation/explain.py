"""A recipe as it was understood, as text that is a recipe itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from onnxbuild.core.errors import RecipeErrors, UsageError
from onnxbuild.core.recipe import Location, Recipe
from onnxbuild.document.node import Member, Node, mapping, node_of, sequence
from onnxbuild.document.recipe_names import RecipeName
from onnxbuild.explanation.defaults import DEFAULT, with_defaults
from onnxbuild.explanation.rebase import rebased
from onnxbuild.recipe.assemble import Loader, Understood
from onnxbuild.recipe.declared.model_sources import source_of
from onnxbuild.recipe.load import load_recipes
from onnxbuild.recipe.parts.keys import COMPONENTS, of_the_whole
from onnxbuild.recipe.templates.extend import absolute
from onnxbuild.recipe.yaml.write import block_lines
from onnxbuild.regular_files import read_user_file

_NONE: Mapping[str, str] = MappingProxyType({})
_COMMENT = "# "

Keys = tuple[str, ...]
"""A key of a recipe, and one below it."""


def explain_file(
    path: Path,
    *,
    project: Path,
    overrides: Mapping[str, str] = _NONE,
    environment: Mapping[str, str] = _NONE,
) -> dict[str, str]:
    """Recipe -> its text in full: YAML that builds the same, put next to that file; components have one together.

    Args:
        overrides: `--set`.
        environment: Where the variables named by `env` lists are looked up.

    Raises:
        UsageError: There is no such file; or a base in another folder names a module, which no recipe
            in this folder can name.
        RecipeErrors: All faults of the recipe.
    """
    load_recipes(path, project=project, overrides=overrides, environment=environment)
    file, root = absolute(path), absolute(project)
    understood: list[Understood] = []
    Loader(root, environment, understood).load(file, read_user_file(file), overrides)
    together: dict[str, list[_Explanation]] = {}
    for each in understood:
        part = _Explanation(file, root, environment, each)
        together.setdefault(part.whole, []).append(part)
    return {
        part.name: text
        for whole, parts in together.items()
        for text in [_text(whole, parts)]
        for part in parts
    }


def _text(name: str, parts: Sequence[_Explanation]) -> str:
    """One recipe in full, of all its components."""
    lines = [each.lines() for each in parts]
    whole, head = lines[0], parts[0].head(name)
    if not parts[0].component:
        return head + _joined(whole)
    shared = {key: whole[key] for key in of_the_whole() if key in whole and key != COMPONENTS}
    text = f"{head}{_joined(shared)}{COMPONENTS}:\n"
    for part, own in zip(parts, lines, strict=True):
        keys = {key: each for key, each in own.items() if key not in of_the_whole()}
        inside = {"model": part.model_lines(), **keys}
        text += f"  {part.component}:\n"
        text += _joined({key: list(map(_indented, each)) for key, each in inside.items()})
    return text


def _indented(line: str) -> str:
    """A line of a recipe as one of a component; comments start where they did."""
    is_comment = line.startswith(_COMMENT)
    return f"{_COMMENT * is_comment}    {line.removeprefix(_COMMENT)}"


class _Explanation:
    """One recipe in full; it is read again, and must say the same, before it is returned.

    Args:
        file: Of the recipe, absolute.
        project: The project's root, absolute.
        environment: The variables that recipes may name.
        understood: The recipe, and the tree that it was made of.
    """

    def __init__(
        self, file: Path, project: Path, environment: Mapping[str, str], understood: Understood
    ) -> None:
        self._file = file
        self._project = project
        self._environment = environment
        self._understood = understood
        self._shown = understood.recipe.location.path
        self._templates = frozenset(_templates(understood.written))
        self._source = source_of(understood.root)
        self._said_by_source = (
            understood.root.members["model"].node.members[self._source].node
            if self._source
            else None
        )

    @property
    def name(self) -> str:
        """The recipe's name."""
        return self._understood.recipe.name

    @property
    def whole(self) -> str:
        """Name of what it is a component of; its own where it is none."""
        return str(RecipeName.parse(self.name).sibling("")) if self.component else self.name

    @property
    def component(self) -> str:
        """The component's name; empty where the recipe has none."""
        return self._understood.recipe.component

    def lines(self) -> dict[str, list[str]]:
        """Key -> its lines: of what is written and of the defaults that may be; the others are comments.

        Raises:
            UsageError: It can't be written as one file.
        """
        written = self._with_member(self._rebased())
        full = with_defaults(written, self._understood.recipe)
        left_out: set[Keys] = set()
        while True:
            lines = dict(self._keyed_lines(full, written, left_out))
            at_fault = self._refused(_joined(lines))
            if not at_fault:
                return lines
            wider = at_fault - left_out or {keys[:1] for keys in at_fault} - left_out
            if not all(keys and keys[0] in full.members for keys in wider) or not wider:
                raise self._of_another_folder()
            left_out |= wider

    def model_lines(self) -> list[str]:
        """Lines of a component's model."""
        model = self._rebased().members["model"]
        return list(block_lines(mapping({"model": model}, model.at), self._origin))

    def _rebased(self) -> Node:
        """The recipe with paths that are relative to its own folder."""
        root = self._with_source_apart(self._understood.root)
        return rebased(root, self._understood.folder_of, self._file.parent)

    def _of_another_folder(self) -> UsageError:
        """Return why a recipe whose base is in another folder can't be written in its own."""
        recipe = self._understood.recipe
        homes = [
            each.target.rpartition(":")[0] for each in (recipe.model, *recipe.entrypoints.values())
        ]
        base = self._understood.root.members["model"].at.path
        what = f"it can't be written as one file: its base {base} is in another folder, "
        if any(home and not home.endswith(".py") for home in homes):
            what += "and names a module"
            fix = "name the module's file instead: `FILE.py:CALLABLE`"
        else:
            what += "where the code that it names also finds what it imports; here it would not"
            fix = f"put {self._shown} next to {base}, or read the base: onnxbuild explain {base}"
        return UsageError(what, where=self._shown, fix=fix)

    def _with_source_apart(self, root: Node) -> Node:
        """The recipe whose key for the model's file is not at the place of what the file says."""
        if self._said_by_source is None:
            return root
        model, node = root.members["model"], self._said_by_source
        apart = Node(Location(node.at.path, node.at.line, 0), node.value)
        members = {**model.node.members, self._source: Member(node.at, apart)}
        own = Member(model.at, mapping(members, model.node.at))
        return mapping({**root.members, "model": own}, root.at)

    def _with_member(self, root: Node) -> Node:
        """The recipe with the one component, and a matrix of the one combination, from which it has its name."""
        if self.component:
            members = dict(root.members)
            model = members.pop("model")
            own = mapping({"model": model}, model.at)
            one = mapping({self.component: Member(model.at, own)}, model.at)
            root = mapping({**members, COMPONENTS: Member(model.at, one)}, root.at)
        chosen, matrix = self._understood.chosen, self._understood.written.child("matrix")
        if not chosen or matrix is None:
            return root
        at = matrix.at
        values = {k: Member(at, sequence([node_of(v, at)], at)) for k, v in chosen.items()}
        return mapping({**root.members, "matrix": Member(at, mapping(values, at))}, root.at)

    def _keyed_lines(
        self, full: Node, written: Node, left_out: set[Keys]
    ) -> Iterator[tuple[str, list[str]]]:
        """Yield (key, its lines): as it is written where its defaults may not be, else those as comments."""
        for key, member in full.members.items():
            own = written.members.get(key)
            below = {keys[1] for keys in left_out if keys[0] == key and len(keys) > 1}
            taken = _with_own(member, own, below)
            if (key,) in left_out and own is not None:
                taken = own
            lines = block_lines(mapping({key: taken}, taken.at), self._origin)
            is_comment = (key,) in left_out and own is None
            yield key, [_COMMENT * is_comment + line for line in lines]

    def _refused(self, text: str) -> set[Keys]:
        """Keys that the recipe can't have, or differs with; empty if the text is the same recipe."""
        loader = Loader(self._project, self._environment, is_whole=False)
        try:
            (again,) = loader.load(self._file, text.encode(), {})
        except RecipeErrors as errors:
            return {_keys_at(text, fault.where) for fault in errors.faults}
        return {(key,) for key in _differing(self._understood.recipe, again)}

    def head(self, name: str) -> str:
        """Return the first line."""
        return f"# {name}: {self._shown} in full, as onnxbuild understands it\n"

    def _origin(self, at: Location) -> str:
        """Return where a value comes from that the recipe does not write itself; empty for its own."""
        if at == DEFAULT:
            return "default"
        if not at.line:
            return at.path  # --set KEY
        if self._said_by_source is not None and at == self._said_by_source.at:
            return f"from {self._said_by_source.value}"
        place = f"{at.path}:{at.line}"
        if at in self._templates:
            return f"template, {place}"
        return "" if at.path == self._shown else place


def _templates(node: Node) -> Iterator[Location]:
    """Yield the places of all scalars that hold a template."""
    below = [member.node for member in node.members.values()] or node.items
    for each in below:
        yield from _templates(each)
    if node.templated and not below:
        yield node.at


def _with_own(full: Member, own: Member | None, names: set[str]) -> Member:
    """A key's value where some members have nothing but what is written."""
    if own is None or not names:
        return full
    members = {
        name: own.node.members.get(name, member) if name in names else member
        for name, member in full.node.members.items()
    }
    return Member(full.at, mapping(members, full.node.at))


def _joined(lines: Mapping[str, list[str]]) -> str:
    return "".join(f"{line}\n" for each in lines.values() for line in each)


def _keys_at(text: str, where: str) -> Keys:
    """The recipe's key at a place `FILE:LINE:COLUMN`, and the one below it if the place is there."""
    line = int(where.rsplit(":", 2)[1])
    keys: Keys = ()
    for each in text.splitlines()[:line]:
        depth = len(each) - len(each.lstrip())
        if depth in (0, 2) and not each.lstrip().startswith(("#", "-")):
            keys = (*keys[: depth // 2], each.strip().partition(":")[0])
    return keys


def _differing(one: Recipe, other: Recipe) -> Iterator[str]:
    """Yield the keys in which two recipes differ, their places aside."""
    asked: tuple[tuple[str, Callable[[Recipe], object]], ...] = (
        ("model", lambda recipe: (recipe.model, recipe.environment)),
        ("frontend", lambda recipe: recipe.frontend),
        ("dummy_inputs", lambda recipe: recipe.inputs),
        ("outputs", lambda recipe: recipe.outputs),
        ("dynamic_axes", lambda recipe: recipe.axes),
        ("opset", lambda recipe: recipe.opset),
        ("quantization", lambda recipe: tuple(map(_unplaced, recipe.variants))),
        ("formats", lambda recipe: tuple(map(_unplaced, recipe.formats))),
        ("providers", lambda recipe: (recipe.targets, recipe.gates)),
        ("name", lambda recipe: recipe.name),
    )
    for key, of in asked:
        if of(one) != of(other):
            yield key
    for name, section in one.sections.items():
        if section != other.sections[name]:
            yield name
    if one.entrypoints != other.entrypoints:
        yield ""


def _unplaced(part: object) -> object:
    return dataclasses.replace(part, location=DEFAULT)  # type: ignore[type-var]
