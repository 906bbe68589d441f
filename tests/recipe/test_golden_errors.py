"""Every faulty recipe in tests/golden/recipe_errors gives exactly the sentences next to it.

PROVIDERS and MODES stand there for the names of all of them, so that a new one changes no sentence.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from onnxbuild.catalog import MODES
from onnxbuild.core.errors import EXIT_USAGE, RecipeErrors
from onnxbuild.providers import provider_names
from onnxbuild.recipe.load import load_recipes

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
