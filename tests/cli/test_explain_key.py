"""`explain` of a key at the command line, and of a recipe as before."""

from tests.explanation.test_key_page import GOAL


def test_a_key_is_explained_without_a_terminal_and_a_recipe_as_before(cheap):
    assert cheap("explain", "goal", env={"COLUMNS": ""}).out == GOAL
    assert cheap("explain", "tiny.yaml").out.startswith("# tiny: tiny.yaml in full")


def test_an_unknown_key_names_the_three_nearest(cheap):
    seen = cheap("explain", "gaol")
    assert (seen.code, seen.err) == (
        2,
        (
            "error: no recipe has a key 'gaol'; the nearest are goal, atol and acl\n"
            "  fix: onnxbuild explain goal; all keys: docs/recipe.md\n"
        ),
    )
