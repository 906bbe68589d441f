"""Hundreds of recipes in one run: one graph, one summary."""

import json

import pytest

from tests.cli.conftest import CHEAP_MODEL, QUICK, RECIPE, CheapProject

COUNT = 45


@pytest.fixture
def many(tmp_path):
    """45 recipes: 40 combinations of a matrix, and five files of which two are equal but for their names."""
    made = CheapProject(tmp_path / "project")
    made.write("pyproject.toml", "")
    made.write("models/helper.py", "def activation():\n    return 'ReLU'\n")
    made.write("models/tiny.py", CHEAP_MODEL)
    text = (RECIPE + QUICK).replace("models/tiny", "../models/tiny")
    numbers = ", ".join(map(str, range(1, 41)))
    matrix = text.replace(
        "model: {",
        f"matrix: {{width: [{numbers}]}}\nmodel: {{args: {{width: '{{{{ width }}}}'}}, ",
    )
    made.write("recipes/tiny.yaml", matrix)
    for number in range(5):
        args = f"model: {{args: {{width: {100 + number // 2}}}, "
        each = text.replace("name: tiny", f"name: file{number}").replace("model: {", args)
        made.write(f"recipes/file{number}.yaml", each)
    return made


def test_many_recipes_are_one_graph_with_equal_steps_once(many):
    planned = many("plan", "recipes").out
    assert "file0:export" in planned
    assert "file1:export" not in planned  # it equals file0's
    done = many("run", "recipes")
    assert done.code == 0
    starts = [line for line in done.out.splitlines() if line.startswith("run     ")]
    assert sum(line.split()[1].endswith(":export") for line in starts) == 40 + 3
    assert len(list((many.folder / "artifacts/out").iterdir())) >= COUNT


@pytest.mark.slow
def test_the_summary_of_many_is_short_unless_it_is_asked_for(many):
    first = many("run", "recipes", "--quiet")
    rows = [line for line in first.out.splitlines() if " fp32 " in line]
    assert len(rows) == 40
    assert (
        f"{COUNT} variants of {COUNT} recipes; 40 of them are shown, --verbose shows all"
        in first.out
    )
    again = many("run", "recipes", "--quiet").out
    assert (
        f"{COUNT} variants of {COUNT} recipes; none of them was built now, --verbose shows all"
        in again
    )
    assert " fp32 " not in again
    whole = many("run", "recipes", "--verbose").out
    assert sum(" fp32 " in line for line in whole.splitlines()) == COUNT
    many.edit("recipes/file4.yaml", "width: 102", "width: 103")
    edited = many("run", "recipes", "--quiet").out
    assert sum(" fp32 " in line for line in edited.splitlines()) == 1


@pytest.mark.slow
def test_failures_among_many_are_told_again_at_the_end(many):
    for number in (1, 4):
        path = f"recipes/file{number}.yaml"
        many.edit(path, "name:", "validate: {fp32: {sqnr_db_min: 999}}\nname:")
    done = many("run", "recipes", "--keep-going", "--quiet")
    assert done.code == 3
    end = done.err.splitlines()[-8:]
    assert sum(line.startswith("failed  file") for line in end) == 2
    record = json.loads(many("run", "recipes", "-k", "--json").out.splitlines()[-1])
    assert [each["step"] for each in record["failures"]] == [
        "file1:fp32/validate",
        "file4:fp32/validate",
    ]
