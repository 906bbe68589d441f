"""Find the recipe files that a command line means: files, folders, names."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from onnxbuild.core.errors import UsageError
from onnxbuild.document.recipe_names import RecipeName, TypedName
from onnxbuild.typed.typed_names import ENDINGS, find_recipe


def recipes_meant(given: Sequence[str], *, can_choose: bool = False) -> list[str]:
    """Return the recipe files that a command line means, each once.

    Args:
        given: Files, folders and names of recipes; where it is empty, those that `default` of
            `[tool.onnxbuild]` in pyproject.toml lists, else all of the project's recipes/, or of its root.
        can_choose: The command has `--only`.

    Raises:
        UsageError: A folder holds no recipe, a file is a model or Python, there is no recipe of a
            name or several, a name means a part of a file, a name is empty, or there is no recipe at all.
    """
    from onnxbuild.recipe.requested import given_or_default, recipes_in

    found: list[str] = []
    for each in given_or_default(given):
        found += (
            recipes_in(each) if Path(each).is_dir() else [recipe_file(each, can_choose=can_choose)]
        )
    each_once = {Path(path).parent.resolve() / Path(path).name: path for path in reversed(found)}
    return list(each_once.values())[::-1]


def recipe_file(text: str, *, can_choose: bool = False) -> str:
    """Return the file that a recipe's file or name means.

    Args:
        can_choose: The command has `--only`.

    Raises:
        UsageError: As `recipes_meant`.
    """
    from onnxbuild.recipe.requested import refuse_other_files

    if Path(text).is_file():
        refuse_other_files(text)
        return text
    if text.endswith(ENDINGS) or not text:
        return text  # whoever reads it says that it is not there
    typed = TypedName.parse(text)
    if typed.recipe.endswith(".py"):
        fix = f"write a first recipe: onnxbuild init {shlex.quote(text)}"
        raise UsageError(f"{text} is a callable, not a recipe", fix=fix)
    if typed.recipe:
        file = find_recipe(typed.recipe, part=typed.local)
        raise UsageError(
            f"'{text}' is a part of a recipe; a whole one is expected here",
            fix=f"write {file} --only {text}" if can_choose else f"write {file}",
        )
    file = find_recipe(text)
    if RecipeName.parse(text).member and not can_choose:
        raise UsageError(
            f"'{text}' is one of the recipes of {file}; a whole file is expected here",
            fix=f"write {file}",
        )
    return str(file)


def parts_meant(given: Sequence[str], only: Sequence[str]) -> tuple[str, ...]:
    """Return what `--only` has to name where a component or a combination is given as a recipe.

    Args:
        given: As for `recipes_meant`.
        only: What `--only` names itself; of that recipe then.
    """
    members = [each for each in given if RecipeName.parse(each).member and not Path(each).exists()]
    if not members:
        return tuple(only)
    names = [
        name for each in given for name in ([each] if each in members else recipes_meant([each]))
    ]
    return tuple(
        each if TypedName.parse(each).recipe else f"{name}:{each}"
        for each in only
        for name in names
    ) or tuple(names)
