from __future__ import annotations

import pytest


def test_a_var_is_set_before_anything_is_rendered(project, base):
    text = base + 'vars: {o: 16, next: "{{ o + 1 }}"}\nopset: "{{ next }}"\n'
    assert project.recipe(text, {"o": "17"}).opset == 18
    assert project.recipe(text, {"vars.o": "18"}).opset == 19


def test_a_matrix_name_is_narrowed_to_one_value(project, base):
    text = base + 'matrix: {o: [16, 17]}\nopset: "{{ o }}"\n'
    recipe = project.recipe(text, {"o": "18"})
    assert (recipe.name, recipe.opset) == ("demo@o=18", 18)


def test_any_key_of_the_recipe_can_be_set(project, base):
    recipe = project.recipe(
        base + "quantization: {int8: dynamic}\n",
        {
            "opset": "17",
            "quantization.int8.per_channel": "false",
            "quantization.fp32": "none",
            "optimize.level": "basic",
            "export.exporter": '"dynamo"',
            "model.args.hidden": "3",
        },
    )
    assert recipe.opset == 17
    assert recipe.variants[0].options.per_channel is False
    assert [variant.name for variant in recipe.variants] == ["int8", "fp32"]
    assert recipe.sections["optimize"].level == "basic"
    assert recipe.sections["export"].exporter == "dynamo"
    assert recipe.model.args == {"hidden": 3}


def test_a_key_with_dots_of_its_own_is_reached(project, base):
    text = base.replace("ids:", '"past.0/key":')
    recipe = project.recipe(text, {"dummy_inputs.past.0/key.high": "7"})
    assert [(each.name, each.high) for each in recipe.inputs] == [("past.0/key", 7)]


def test_a_short_form_is_opened_to_reach_inside(project, base):
    recipe = project.recipe(
        base + "quantization: dynamic\n", {"quantization.int8.per_channel": "false"}
    )
    assert recipe.variants[0].options.per_channel is False


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        (
            "opste",
            "1",
            "--set opste: --set names 'opste', which is no var, no matrix name and no key of the recipe; did you mean 'opset'?",
        ),
        ("opset", "x", "--set opset: opset is 'x' (a string); expected an integer from 11 to 23"),
        (
            "export.exportr",
            "auto",
            "--set export.exportr: key 'exportr' is not an option of export; did you mean 'exporter'?",
        ),
        ("name.x", "1", "--set name.x: 'name' is no mapping; --set can't reach inside"),
        ("matrix", "1", "--set matrix: --set matrix names no single value"),
        ("opset", ".nan", "--set opset: '.nan' is not finite; expected a finite number"),
        (
            "export.constant_folding",
            "no",
            "--set export.constant_folding: export.constant_folding is 'no' (a string); expected true or false",
        ),
        (
            "model",
            "models/other.py:load",
            "--set model: model: there is no file 'recipes/models/other.py'; did you mean 'model.py'?",
        ),
    ],
)
def test_a_wrong_setting_is_told_by_its_key(project, base, key, value, sentence):
    assert project.faults(base, {key: value}) == [sentence]


def test_a_list_or_mapping_is_set_in_brackets(project, base):
    settings = {"providers": "[cuda, cpu]", "quantization": "{q: {mode: dynamic}}"}
    recipe = project.recipe(base, settings)
    assert [target.name for target in recipe.targets] == ["cuda", "cpu"]
    assert recipe.variants[0].name == "q"
    assert str(recipe.variants[0].location) == "--set quantization"
    assert project.faults(base, {"providers": "[cuda"}) == [
        "--set providers: '[cuda' is no YAML value"
    ]


def test_a_template_can_be_set(project, base):
    assert project.recipe(base + "vars: {o: 17}\n", {"opset": "{{ o }}"}).opset == 17


def test_extends_can_not_be_set(project, base):
    (fault,) = project.faults(base, {"extends": "x.yaml"})
    assert "no key of the recipe" in fault
