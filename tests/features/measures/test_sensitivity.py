import pytest

from onnxbuild.core.errors import RecipeErrors

FIDELITY = "fidelity: {data: models/model.py:samples}\n"
EVALUATE = "evaluate: {data: models/model.py:samples, metric: models/model.py:samples}\n"
KEPT = "quantization: {int8: {mode: MODE, keep_most_sensitive: 0.1}}\n"
CALIBRATION = "calibration: {data: models/model.py:samples}\n"


def kept(mode):
    return KEPT.replace("MODE", mode) + (CALIBRATION if mode == "static" else "")


@pytest.mark.parametrize("mode", ["dynamic", "static"])
def test_nodes_are_kept_by_data_or_by_the_metric(project, base, mode):
    with pytest.raises(RecipeErrors, match=r"keeps sensitive nodes, and no fidelity\.data"):
        project.recipe(base + kept(mode))
    by_metric = EVALUATE + "sensitivity: {rank_by: metric}\n"
    for rest in (FIDELITY, by_metric):
        (found,) = project.recipe(base + kept(mode) + rest).variants
        assert found.options.keep_most_sensitive == 0.1


def test_ranking_by_the_metric_asks_for_one(project, base):
    with pytest.raises(RecipeErrors, match="ranks by the user's metric, and the recipe has no"):
        project.recipe(base + FIDELITY + "sensitivity: {rank_by: metric, table: true}\n")


def test_a_table_asks_for_data(project, base):
    table = "sensitivity: {table: true}\n"
    with pytest.raises(RecipeErrors, match=r"asks for a table, and no fidelity\.data is named"):
        project.recipe(base + table)
    assert project.recipe(base + FIDELITY + table).sections["sensitivity"].table is True
    off = project.recipe(base + "sensitivity: {table: false}\n")
    assert off.sections["sensitivity"].table is False


def test_samples_and_runs_are_positive(project, base):
    for key in ("samples", "runs"):
        with pytest.raises(RecipeErrors, match=key):
            project.recipe(base + FIDELITY + f"sensitivity: {{{key}: 0}}\n")
