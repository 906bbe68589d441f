"""The recipe of a source: a model's file says its own; a callable is run, fenced, and its model is asked."""

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onnxbuild.catalog import MODEL_SOURCES
from onnxbuild.core.draft import Draft
from onnxbuild.core.errors import StepError, UsageError
from onnxbuild.core.params import from_json
from onnxbuild.core.recipe import Location
from onnxbuild.core.source_error import SourceError
from onnxbuild.document.node import plain
from onnxbuild.expansion.model_source import SourceFacts, no_trial
from onnxbuild.first_recipe.recipe_text import HOLE, FirstRecipe, Reader, first_recipe, placed
from onnxbuild.first_recipe.source import Callable, ModelFile, takes_option
from onnxbuild.processes.fenced_call import call_fenced
from onnxbuild.recipe.assemble import Understood
from onnxbuild.recipe.parts.keys import COMPONENTS, PARTS, of_the_whole
from onnxbuild.recipe.templates.extend import absolute

_LOOK_AT_CALLABLE = "onnxbuild.first_recipe.children:look_at_callable"

_LOOK_AT_FILE = "onnxbuild.first_recipe.children:look_at_file"

_INPUTS = "dummy_inputs"

_MENDS_MAX = 64


def recipe_of_file(
    reader: Reader,
    source: ModelFile,
    name: str,
    options: Mapping[str, Any],
    head: str,
    *,
    timeout_s: float,
) -> FirstRecipe:
    """The recipe of a model's file or folder.

    It is read; where it does not say all, it is run in a process that can read it alone, and write nothing.

    Args:
        reader: Reads recipes in their place.
        options: Keys next to the file's in `model`: its task, ...
        head: The recipe's first line.
        timeout_s: Wall time that running it may take.

    Raises:
        UsageError: The file can't be read, or no recipe can declare what is in it.
    """
    refused: UsageError | None = None
    for form in source.forms:
        strange = [key for key in options if not takes_option(form, key)]
        if strange:
            refused = refused or UsageError(
                f"`{strange[0]}` says nothing of {source.path}: `model: {{{form}: ...}}` has no such key",
                fix=f"leave `--{strange[0].replace('_', '-')}` out",
            )
            continue
        model = {form: _relative(source.path, reader), **options}
        path = absolute(source.path)
        written, why = _mended(form, path, {"version": 1, "name": name, "model": model})
        tried = _tried(form, path, written, timeout_s)
        written, why = _over(written, tried["recipe"]), {**why, **tried["comments"]}
        why |= {key: f"{HOLE}: {text}" for key, text in tried["holes"].items()}
        try:
            understood = reader.read(json.dumps(written, ensure_ascii=False))
        except UsageError as error:
            refused = refused or error
            continue
        value = _joined(understood)
        said = {key: f"from {source.path.name}" for key in value if key not in written}
        said |= dict.fromkeys(("dummy_inputs", "dynamic_axes"), f"from {source.path.name}")
        facts = _said(form, path, written)
        said |= {**(facts.notes if isinstance(facts, SourceFacts) else {}), **why}
        return first_recipe(reader, head, placed(value, said), _of_place)
    assert refused is not None
    raise refused


def _joined(understood: Sequence[Understood]) -> dict[str, Any]:
    """Return the recipe in full, that of all components together, without what the file says anyway."""
    trees = {each.recipe.component: plain(each.root) for each in understood}
    for tree in trees.values():
        del tree["frontend"]
    first = next(iter(trees.values()))
    if "" in trees:
        return dict(first)
    whole = {key: first[key] for key in of_the_whole() if key in first}
    own = {
        name: {
            key: tree[key] for key in dict.fromkeys((*PARTS, *tree)) if key in {*tree} - {*whole}
        }
        for name, tree in trees.items()
    }
    return {**whole, COMPONENTS: own}


def whole_of(reader: Reader, source: ModelFile) -> Draft | None:
    """Return what a folder of several models says of a recipe with components; None of one model.

    Raises:
        UsageError: It holds others than the recipe could be written for.
    """
    path = absolute(source.path)
    for form in source.forms:
        try:
            found = MODEL_SOURCES[form].whole(
                path, _relative(source.path, reader), reader.code.name
            )
        except (SourceError, OSError) as error:
            fix = (
                error.fix
                if isinstance(error, SourceError)
                else "check that the folder is complete"
            )
            raise UsageError(f"{source.path}: {error}", fix=fix) from error
        if found is not None:
            return found
    return None


def recipe_of_whole(reader: Reader, draft: Draft, name: str, head: str) -> FirstRecipe:
    """Return the recipe of several models, whose code is written already.

    Raises:
        UsageError: It has a fault.
    """
    value = {"version": 1, "name": name, **draft.recipe}
    return first_recipe(reader, head, placed(value, _comments(draft)), _of_place)


def _tried(
    form: str, path: Path, recipe: Mapping[str, Any], timeout_s: float
) -> Mapping[str, Mapping[str, Any]]:
    """Run a model's file, and return `recipe`, `comments`, `holes`; nothing if that fails and the file says enough.

    Raises:
        UsageError: It fails, and no recipe can be written without it.
    """
    nothing: Mapping[str, Mapping[str, Any]] = {"recipe": {}, "comments": {}, "holes": {}}
    if MODEL_SOURCES[form].tried is no_trial:
        return nothing
    with tempfile.TemporaryDirectory(prefix="onnxbuild-init-") as folder:
        job = {"form": form, "path": str(path), "recipe": recipe}
        facts = _said(form, path, recipe)
        readable = (path, *(facts.files if isinstance(facts, SourceFacts) else ()))
        try:
            tried = call_fenced(
                _LOOK_AT_FILE,
                job,
                readable=readable,
                scratch=Path(folder),
                where=path.name,
                timeout_s=timeout_s,
            )
        except StepError as error:
            if not isinstance(facts, SourceError):  # the build reports it
                return nothing
            raise UsageError(error.what, fix=error.fix) from error
    return tried or nothing


def recipe_of_callable(
    reader: Reader,
    source: Callable,
    name: str,
    head: str,
    *,
    inputs: Callable | None,
    outside: Sequence[str],
    timeout_s: float,
) -> FirstRecipe:
    """The recipe of a callable, which is run in a process that can read the project and write nothing.

    Args:
        reader: Reads recipes in their place.
        head: The recipe's first line.
        inputs: A callable that gives examples of the model's inputs; None without one.
        outside: Files and folders outside of the project that it reads.
        timeout_s: Wall time that it may take.

    Raises:
        StepError: The callable raises, or returns what no frontend takes.
        UsageError: No recipe can declare what it returns.
    """
    file = Path(os.path.abspath(source.file))  # noqa: PTH100 - keeps links
    project = reader.project if file.is_relative_to(reader.project) else file.parent

    def target_of(each: Callable) -> str:
        return f"{os.path.relpath(each.file, project)}:{each.name}"

    target = target_of(source)
    entrypoint = f"{_relative(file, reader)}:{source.name}"
    for form, known in MODEL_SOURCES.items():
        draft = known.draft(file, source.name)
        if draft is not None:
            drafted = {"version": 1, "name": name, "model": {form: entrypoint}, **draft.recipe}
            return first_recipe(reader, head, placed(drafted, _comments(draft)), _of_place)
    named = [os.path.abspath(each) for each in outside]  # noqa: PTH100 - resolves `..`
    with tempfile.TemporaryDirectory(prefix="onnxbuild-init-") as folder:
        job = {
            "project": str(project),
            "roots": [os.path.relpath(file.parent, project), "."],
            "target": target,
            "inputs": "" if inputs is None else target_of(inputs),
            "outside": named,
        }
        readable = [project, *map(Path, named)]
        try:
            said = call_fenced(
                _LOOK_AT_CALLABLE,
                job,
                readable=readable,
                scratch=Path(folder),
                where=target,
                timeout_s=timeout_s,
            )
        except StepError as error:
            if PermissionError.__name__ not in error.what:
                raise
            fix = "it may read the project, and what `--files PATH` names; it can write nothing"
            raise StepError(error.what, where=error.where, fix=fix) from error
    files = [_relative(project / each, reader) for each in said["files"]]
    files += [_relative(Path(each), reader) for each in named]
    model: Any = {"entrypoint": entrypoint, "files": files} if files else entrypoint
    value = {"version": 1, "name": name, "model": model, **said["recipe"]}
    comments = {
        "model.files": "what it opened as `init` ran it",
        **_comments(Draft(said["recipe"], said["comments"], said["holes"])),
    }
    return first_recipe(reader, head, placed(value, comments), _of_place)


def _comments(draft: Draft) -> dict[str, str]:
    return {**draft.comments, **{key: f"{HOLE}: {text}" for key, text in draft.holes.items()}}


def _of_place(at: Location) -> str:
    return at.path


def _relative(path: Path, reader: Reader) -> str:
    return Path(os.path.relpath(path, reader.file.parent)).as_posix()


def _mended(
    form: str, path: Path, recipe: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """Write what a model's file can't say and a recipe must, where its reader knows it; and dotted key -> why it is there."""
    why: dict[str, str] = {}
    for _ in range(_MENDS_MAX):
        refused = _said(form, path, recipe)
        if not isinstance(refused, SourceError) or not refused.mend:
            break
        recipe = _over(recipe, refused.mend)
        for key, value in refused.mend.items():
            if key == _INPUTS:
                why |= {f"{key}.{name}": f"{HOLE}: {refused.fix}" for name in value}
            else:
                at = ".".join((key, *value)) if isinstance(value, Mapping) else key
                why[at] = refused.what
    return recipe, why


def _said(form: str, path: Path, recipe: Mapping[str, Any]) -> SourceFacts | SourceError | None:
    """Return the facts of a model's file in a recipe, or what is wrong; None for what is reported where the recipe is read."""
    source = MODEL_SOURCES[form]
    own = {key: value for key, value in recipe["model"].items() if key != form}
    try:
        options: object = from_json(source.options, own, "model")
        return source.read(path, source.look(path), options, recipe)
    except SourceError as error:
        return error
    except (OSError, ValueError):
        return None


def _over(below: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    """One mapping over another, mappings in them merged."""
    merged = dict(below)
    for key, each in value.items():
        under = merged.get(key)
        both = isinstance(each, Mapping) and isinstance(under, Mapping)
        merged[key] = _over(under, each) if both and isinstance(under, Mapping) else each
    return merged
