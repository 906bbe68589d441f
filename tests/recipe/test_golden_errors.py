"""Every faulty recipe in tests/golden/recipe_errors gives exactly the sentences next to it; a fix that is typed mends its fault.

PROVIDERS and MODES stand there for the names of all of them, so that a new one changes no sentence.
"""

import shutil
from functools import cache
from pathlib import Path

import pytest

from onnxbuild.catalog import MODES
from onnxbuild.core.errors import EXIT_USAGE, RecipeError, RecipeErrors
from onnxbuild.providers import provider_names
from onnxbuild.recipe.load import load_recipes
from tests.recipe.typed_fixes import typed

FOLDER = Path(__file__).parents[1] / "golden" / "recipe_errors"
CASES = sorted(FOLDER.glob("*.yaml"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_all_faults_are_reported_with_place_and_fix(case):
    with pytest.raises(RecipeErrors) as caught:
        load_recipes(case, project=FOLDER)
    expected = case.with_suffix(".txt").read_text()
    for word, names in {"PROVIDERS": provider_names(), "MODES": MODES}.items():
        expected = expected.replace(word, ", ".join(names))
    assert f"{caught.value}\n" == expected
    assert caught.value.exit_code == EXIT_USAGE


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_each_fault_has_a_place_in_a_file_and_a_fix(case):
    with pytest.raises(RecipeErrors) as caught:
        load_recipes(case, project=FOLDER)
    for fault in caught.value.faults:
        path, line, column = fault.where.rsplit(":", 2)
        assert (FOLDER / path).is_file()
        assert int(line) >= 1
        assert int(column) >= 1
        assert fault.fix


def faults_of(recipe: Path) -> tuple[RecipeError, ...]:
    try:
        load_recipes(recipe, project=recipe.parent)
    except RecipeErrors as errors:
        return errors.faults
    return ()


@cache
def tries(recipe: Path) -> list[tuple[RecipeError, str | None]]:
    """(a fault of a recipe, its text after the fix); None where there is nothing to type."""
    found = []
    for fault in faults_of(recipe):
        path, line, column = fault.where.rsplit(":", 2)
        is_own = path == recipe.name
        text = recipe.read_text(encoding="utf-8")
        found.append((fault, typed(text, int(line), int(column), fault.fix) if is_own else None))
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_a_fix_that_is_typed_mends_its_fault(tmp_path, case):
    shutil.copytree(FOLDER, tmp_path / "project")
    recipe = tmp_path / "project" / case.name
    for fault, text in tries(case):
        if text is None:
            continue
        recipe.write_text(text, encoding="utf-8")
        left = [f"{each.where}: {each.what}" for each in faults_of(recipe)]
        assert f"{fault.where}: {fault.what}" not in left, f"{fault}\n\n{text}"
        shutil.copyfile(case, recipe)


def test_most_faults_have_a_fix_to_type():
    all_of_them = [text for case in CASES for _, text in tries(case)]
    assert sum(text is not None for text in all_of_them) > len(all_of_them) / 2
