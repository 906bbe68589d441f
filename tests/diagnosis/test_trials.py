"""The fewest suspects to spare, and the runtime that a variant is looked at on."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxbuild.core.action import ActionResult, Observed
from onnxbuild.diagnosis.chain import chain_of, judged_on
from onnxbuild.diagnosis.trials import SearchGoal, least_that_passes
from onnxbuild.host.host import HostFacts
from onnxbuild.onnxkit.search.goals import Goal
from onnxbuild.recipe.load import load_recipes
from onnxbuild.resolver import resolve


@given(st.integers(1, 300), st.integers(1, 400))
def test_it_finds_the_least_that_passes_in_logarithmic_time(most, threshold):
    tried = []

    def passes(k):
        tried.append(k)
        return k >= threshold

    found = least_that_passes(most, passes)
    assert found == (threshold if threshold <= most else None)
    assert all(1 <= k <= most for k in tried)
    assert len(tried) == len(set(tried)) <= 2 * math.log2(most + 1) + 2


def test_the_report_of_the_prompts_shows_where_a_goal_on_perplexity_stands():
    goal = SearchGoal(Goal(perplexity_ratio=1.02, max_drop=0.1), 0.1, "x:small", ())
    assert goal.steps == ("x:small/evaluate", "x:small/generate")


RECIPE = """\
version: 1
name: x
model: model.py:load
dummy_inputs: {x: {dtype: float32, shape: [batch, 4]}}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
providers: [cuda, cpu]
"""
SKIPPED = ActionResult("k", Observed(), {}, {"skipped": "it does not load"})
RAN = ActionResult("k", Observed(), {}, {"cosine_min": 1.0})


@pytest.fixture
def chain(tmp_path):
    (tmp_path / "model.py").write_text("def load(): ...\n")
    (tmp_path / "file.yaml").write_text(RECIPE)
    recipes = load_recipes(tmp_path / "file.yaml", project=tmp_path).recipes
    return chain_of(resolve(recipes, HostFacts("x86_64", frozenset())), "x", "fp32")


@pytest.mark.parametrize(
    ("results", "judge", "target"),
    [({}, "x:fp32/validate", "cuda"), ({"x:fp32/validate": SKIPPED}, "x:fp32/validate", "cuda")],
)
def test_a_target_that_was_skipped_says_nothing(chain, results, judge, target):
    found = judged_on(chain, results)
    assert (found.judge, found.target.name) == (judge, target)
    assert found.models == chain.models


@pytest.fixture
def elsewhere(tmp_path):
    """Of a recipe with a second target in an environment of its own, scored there too."""
    (tmp_path / "model.py").write_text("def load(): ...\ndef data(): ...\ndef score(): ...\n")
    (tmp_path / "file.yaml").write_text(
        RECIPE.replace("[cuda, cpu]", "{cpu: {}, b: {provider: cpu, environment: {python: p}}}")
        + "evaluate: {data: model.py:data, metric: model.py:score}\n"
    )
    recipes = load_recipes(tmp_path / "file.yaml", project=tmp_path).recipes
    return chain_of(resolve(recipes, HostFacts("x86_64", frozenset())), "x", "fp32")


@pytest.mark.parametrize(
    ("failing", "target"), [([], "cpu"), (["x:fp32/validate-b", "x:fp32/validate"], "cpu")]
)
def test_the_target_whose_gate_fails_is_looked_at_in_its_environment(elsewhere, failing, target):
    ran = {"x:fp32/validate": RAN, "x:fp32/validate-b": RAN}
    found = judged_on(elsewhere, ran, failing)
    assert found.target.name == target
    assert found.judge == ("x:fp32/validate-b" if target == "b" else "x:fp32/validate")
    assert (found.target.environment is not None) == (target == "b")
