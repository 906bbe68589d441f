"""The stages of loading, in order: read, override, expand, validate, parse, check, assemble."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

from onnxbuild.catalog import FRONTENDS, all_features
from onnxbuild.core.entrypoint import COMPONENT, PIPELINE_DATA
from onnxbuild.core.environment import Environment
from onnxbuild.core.recipe import FRONTEND, Entrypoint, Location, Recipe
from onnxbuild.document.faults import Fault, Faults
from onnxbuild.document.node import Node, Path, key_places, mapping, plain, without_templates
from onnxbuild.document.parts import Parts
from onnxbuild.document.recipe_names import RecipeName
from onnxbuild.expansion.model_source import ENVIRONMENT
from onnxbuild.recipe.checks.connections import connection_faults
from onnxbuild.recipe.checks.consistency import check_parts
from onnxbuild.recipe.declared.entrypoints import EntrypointReader
from onnxbuild.recipe.declared.environments import read_environment
from onnxbuild.recipe.declared.globs import Glob
from onnxbuild.recipe.declared.model_sources import FILLED_IN, ModelSources, source_of
from onnxbuild.recipe.parts.keys import COMPONENTS
from onnxbuild.recipe.parts.parts import (
    DEFAULT_OPSET,
    connections,
    read_parts,
    variant_nodes,
    with_mappings,
)
from onnxbuild.recipe.schema.validator import KeyValidator, as_meant
from onnxbuild.recipe.templates.components import SharedAxes, component_faults, component_trees
from onnxbuild.recipe.templates.expand import Renderer, combinations, member_name
from onnxbuild.recipe.templates.extend import Sources, read_with_bases
from onnxbuild.recipe.templates.overrides import apply_overrides, unused_vars

NAME_MAX = 200
_UNRENDERED = ("vars", "matrix")
_READ_BEFORE = (*_UNRENDERED, "extends")


@dataclass(frozen=True, slots=True)
class Understood:
    """A recipe, and the tree that it was made of.

    Attributes:
        recipe: The recipe.
        root: Bases merged, templates rendered, what the model's file says filled in; no defaults.
        chosen: The matrix's values.
        written: Bases merged, templates as they are.
        folder_of: Place -> the folder that paths written there are relative to.
    """

    recipe: Recipe
    root: Node
    chosen: Mapping[str, Any]
    written: Node
    folder_of: Callable[[Location], FilePath]


class Loader:
    """Loads one recipe file; what its recipes share is read, checked and parsed once.

    Args:
        project: The project's root, absolute.
        environment: Where the variables named by `env` lists are looked up.
        understood: Takes what each recipe was made of; None to forget it.
        is_whole: The file has all components that its inputs may come from.
    """

    def __init__(
        self,
        project: FilePath,
        environment: Mapping[str, str],
        understood: list[Understood] | None = None,
        *,
        is_whole: bool = True,
    ) -> None:
        self._faults = Faults()
        self._sources = Sources(project)
        self._glob = Glob(project)
        self._entrypoints = EntrypointReader(self._sources, environment, self._glob)
        self._models = ModelSources(self._sources)
        self._validator = KeyValidator()
        self._complete = True
        self._checked: dict[tuple[str, Location, str], list[Fault]] = {}
        self._written: Node | None = None
        self._axes = SharedAxes(mapping({}, Location("", 0, 0)))
        self._understood = understood
        self._is_whole = is_whole

    def files(self) -> Iterable[FilePath]:
        """Recipe files that were read."""
        return self._sources.files.values()

    def models(self) -> Iterable[FilePath]:
        """Files of models that said what a recipe leaves out."""
        return self._models.read

    def folders(self) -> Iterable[FilePath]:
        """Folders whose listing decided a glob, or whether there is a file."""
        return {*self._glob.folders, *self._models.folders}

    def code(self) -> Iterable[tuple[FilePath, str]]:
        """(source file, name that it was asked to define)."""
        return self._entrypoints.asked

    def load(
        self, file: FilePath, content: bytes, overrides: Mapping[str, str]
    ) -> tuple[Recipe, ...]:
        """Load all recipes of a file.

        Raises:
            RecipeErrors: All its faults.
        """
        recipes: list[Recipe] = []
        root, self._complete = read_with_bases(file, content, self._sources, self._faults)
        if root is not None:
            self._written = root
            trees = self._trees(root, overrides)
            for _, tree in trees:
                self._faults.update(self._frame(tree))
            recipes = [each for name, tree in trees for each in self._expanded(tree, name)]
            self._check_names(recipes)
            if not self._faults and self._is_whole:
                self._faults.update([*self._axes.faults(), *connection_faults(recipes)])
                recipes += self._wholes(recipes)
            if not self._faults and overrides:
                self._faults.update(self._without_effect(trees, root, overrides))
        if self._faults:
            files = list(self._sources.files)
            raise self._faults.error(files, lambda each: _without_text(each, files[0]))
        return tuple(recipes)

    def _wholes(self, recipes: Sequence[Recipe]) -> list[Recipe]:
        """Return what features make of all components together, at each combination of the matrix."""
        groups: dict[RecipeName, list[Recipe]] = {}
        for each in recipes:
            groups.setdefault(RecipeName.parse(each.name).sibling(""), []).append(each)
        found = []
        for whole in (each.whole for each in all_features() if each.whole is not None):
            for components in groups.values():
                self._faults.update(whole.faults(components))
                made = None if self._faults else whole.recipe(components)
                found += [] if made is None else [made]
        return found

    def _trees(self, root: Node, overrides: Mapping[str, str]) -> list[tuple[str, Node]]:
        """(component, its tree) with the command line's values, which come before all that a component has."""
        known = self._validator.known
        inside = {key: v for key, v in overrides.items() if key.partition(".")[0] == COMPONENTS}
        others = {key: v for key, v in overrides.items() if key not in inside}
        root = apply_overrides(self._models.with_components(root), inside, known, self._faults)
        self._axes = SharedAxes(root)
        self._faults.update([*self._validator.check(COMPONENTS, root), *component_faults(root)])
        return [
            (name, apply_overrides(tree, others, known, self._faults))
            for name, tree in component_trees(root)
        ]

    def _frame(self, root: Node) -> list[Fault]:
        """Unknown keys of the top, and those that are missing."""
        unknown = self._validator.unknown(root)
        if any(fault.meant == "extends" for fault in unknown):
            self._complete = False
        if not self._complete or not self._validator.missing(root, by_file=bool(source_of(root))):
            return unknown
        mended, _ = as_meant(root, self._key_faults, _READ_BEFORE)
        return [*unknown, *self._validator.missing(mended, by_file=bool(source_of(mended)))]

    def _expanded(self, root: Node, component: str) -> list[Recipe]:
        renderer = Renderer(self._faults)
        preamble = [fault for key in _UNRENDERED for fault in self._validator.check(key, root)]
        preamble += _templated_matrix(root)
        self._faults.update(preamble)
        shared_places = dict(_places(root))
        if preamble:  # what templates see is not known; the rest can still be checked
            blind = without_templates(_rendered_part(root))
            self._recipe(blind, component, {}, shared_places)
            return []
        recipes = []
        for chosen in combinations(root.child("matrix"), self._faults):
            scope = renderer.scope(root.child("vars"), chosen)
            rendered = renderer.render(_rendered_part(root), scope)
            recipe = self._recipe(rendered, component, chosen, shared_places)
            if recipe is not None:
                recipes.append(recipe)
        return recipes

    def _without_effect(
        self, trees: Sequence[tuple[str, Node]], written: Node, overrides: Mapping[str, str]
    ) -> Iterable[Fault]:
        """Settings of vars that no template takes, neither now nor in the recipe as it is written."""

        def is_used(var: str) -> bool:
            return Renderer(self._faults).takers(*roots, written)(var)

        roots = [root for _, root in trees]
        return unused_vars(roots[0], overrides, self._validator.known, is_used)

    def _recipe(
        self, root: Node, component: str, chosen: Mapping[str, Any], shared: Mapping[str, Location]
    ) -> Recipe | None:
        root, faults = as_meant(with_mappings(root), self._key_faults, _READ_BEFORE)
        sound = not self._check("model", root) if "model" in root.members else False
        completed = self._models.complete(root, self._faults, sound=sound)
        root = self._axes.fitting(
            _without_filled_in(root) if completed is None else completed.root
        )
        known = self._validator.known
        found = [f for key in root.members if key in known for f in self._check(key, root)]
        unsound = {fault.path for fault in found} | {(k,) for k in root.members if k not in known}
        self._faults.update([*faults, *found])

        def read(node: Node, path: Path, parts: Parts) -> Entrypoint | None:
            if path == ("model",) and source_of(root):
                return None if completed is None else completed.model
            return self._entrypoints.read(node, path, parts.sound, self._faults)

        def environment(node: Node, path: Path) -> Environment | None:
            return read_environment(node, path, self._sources, self._faults)

        own = None if (model := root.child("model")) is None else model.child(ENVIRONMENT)
        known_environment = None
        if own is not None and not any(path[:2] == ("model", ENVIRONMENT) for path in unsound):
            known_environment = environment(own, ("model", ENVIRONMENT))
        parts = read_parts(root, unsound, read, environment)
        if self._complete and completed is not None:  # what is lost there can't be missed here
            self._faults.update(check_parts(parts))
        if self._faults:
            return None
        recipe = _assembled(parts, component, chosen, shared, next(iter(self._sources.files)))
        if known_environment is not None:
            frontend = FRONTENDS[recipe.frontend].environment
            needs = () if frontend is None else frontend.needs
            recipe = replace(recipe, environment=replace(known_environment, needs=needs))
        if self._understood is not None and self._written is not None:
            folder_of = lambda at: self._sources.folder(at.path)  # noqa: E731
            self._understood.append(Understood(recipe, root, chosen, self._written, folder_of))
        return recipe

    def _key_faults(self, root: Node) -> list[Fault]:
        """The faults that the schema finds: of keys of the top, and below those that are known."""
        known = [key for key in root.members if key in self._validator.known]
        below = [fault for key in known for fault in self._check(key, root)]
        return [*self._validator.unknown(root), *below]

    def _check(self, key: str, root: Node) -> list[Fault]:
        value = repr(plain(root.members[key].node))  # distinguishes 1, 1.0, true and '1'
        known = (key, root.members[key].at, value)
        if known not in self._checked:
            self._checked[known] = self._validator.check(key, root)
        return self._checked[known]

    def _check_names(self, recipes: list[Recipe]) -> None:
        counts = Counter(recipe.name for recipe in recipes)
        longest = max(counts, key=len, default="")
        if len(longest) > NAME_MAX:
            what = f"a combination's name has {len(longest)} characters; at most {NAME_MAX}"
            at = recipes[0].lines.get("matrix", recipes[0].location)
            self._faults.add(Fault(what, at, "use shorter values, or fewer names"))
        for name in sorted(name for name, count in counts.items() if count > 1):
            what = f"two combinations of the matrix are both named '{name}'"
            at = recipes[0].lines.get("matrix", recipes[0].location)
            self._faults.add(
                Fault(what, at, "use values that differ in letters, digits, '.', '-'")
            )


def _without_text(fault: Fault, recipe: str) -> Fault:
    """The fault without the text of a file outside of the project: it need not be what the recipe takes it for.

    Args:
        fault: In the recipe, in a base, or in another file that it names.
        recipe: The recipe's file, as messages show it.
    """
    path = fault.at.path
    if path == recipe or not FilePath(path).is_absolute():
        return fault
    what = "this file is outside of the project and has a fault here; its text is not shown"
    return replace(fault, what=what, fix="mend that place, or name another file in the recipe")


def _rendered_part(root: Node) -> Node:
    members = {key: m for key, m in root.members.items() if key not in _UNRENDERED}
    return mapping(members, root.at)


def _without_filled_in(root: Node) -> Node:
    """The recipe without the keys that a model's file completes: what is missing there is not known."""
    members = {key: m for key, m in root.members.items() if key not in FILLED_IN}
    return mapping(members, root.at)


def _templated_matrix(root: Node) -> Iterable[Fault]:
    matrix = root.child("matrix")
    if matrix is not None and matrix.templated:
        what = "matrix holds a template; templates use its values, so it can't hold any"
        yield Fault(what, matrix.at, "write the values themselves", ("matrix",))


def _places(root: Node) -> Iterable[tuple[str, Location]]:
    yield from key_places(root)
    for name, (at, _) in variant_nodes(root).items():
        yield f"quantization.{name}", at


def _assembled(
    parts: Parts,
    component: str,
    chosen: Mapping[str, Any],
    shared: Mapping[str, Location],
    shown: str,
) -> Recipe:
    name, opset, frontend, description = (
        parts.node(key) for key in ("name", "opset", "frontend", "description")
    )
    entrypoints = {
        key: replace(each, args={COMPONENT: component}) if each.target == PIPELINE_DATA else each
        for key, each in parts.entrypoints.items()
    }
    assert name is not None
    rendered_places = {key: at for key, at in _places(parts.root) if key not in shared}
    return Recipe(
        name=str(member_name(str(name.value), component, chosen)),
        base=str(name.value),
        location=Location(shown, 1, 1),
        model=entrypoints.pop("model"),
        inputs=tuple(parts.inputs.values()),
        outputs=parts.outputs,
        axes=tuple(parts.axes.values()),
        opset=DEFAULT_OPSET if opset is None else plain(opset),
        variants=tuple(parts.variants.values()),
        targets=tuple(parts.targets.values()),
        gates=parts.gates,
        sections=parts.sections,
        entrypoints=entrypoints,
        formats=tuple(parts.formats.values()),
        lines={**shared, **rendered_places} if rendered_places else shared,
        frontend=FRONTEND if frontend is None else str(frontend.value),
        description="" if description is None else str(description.value),
        component=component,
        connections=tuple(connections(parts)),
    )
