import pytest

from onnxbuild.core.errors import RecipeErrors


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
        ("opset", "x", "--set opset: opset is 'x' (a string); expected an integer from 11 to 24"),
        ("name.x", "1", "--set name.x: 'name' is no mapping; --set can't reach inside"),
    ],
)
def test_a_wrong_setting_is_reported_by_its_key(project, base, key, value, sentence):
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


SWEPT = 'vars: {o: 16}\nmatrix: {o: [17, 18]}\nopset: "{{ o }}"\n'


def test_a_name_in_both_vars_and_matrix_is_set_in_the_matrix(project, base):
    """The docs' own example: `--set longest=256` was ignored, and both combinations were built."""
    recipe = project.recipe(base + SWEPT, {"o": "19"})
    assert (recipe.name, recipe.opset) == ("demo@o=19", 19)


def test_a_list_takes_the_place_of_a_matrix_names_values(project, base):
    for key in ("o", "matrix.o"):
        recipes = project.load(base + SWEPT, {key: "[19, 20]"}).recipes
        assert [(each.name, each.opset) for each in recipes] == [
            ("demo@o=19", 19),
            ("demo@o=20", 20),
        ]


def test_inside_of_a_var_is_set_with_and_without_its_home(project, base):
    text = base + 'vars: {sizes: {o: 16}}\nopset: "{{ sizes.o }}"\n'
    assert project.recipe(text, {"sizes.o": "17"}).opset == 17
    assert project.recipe(text, {"vars.sizes.o": "18"}).opset == 18
    assert project.faults(base + SWEPT, {"o.x": "1"}) == [
        "--set o.x: 'matrix.o' is no mapping; --set can't reach inside"
    ]


def test_a_setting_that_the_matrix_would_hide_is_refused(project, base):
    for key, value in (("vars.o", "19"), ("vars", "{o: 19}")):
        assert project.faults(base + SWEPT, {key: value}) == [
            f"--set {key}: this changes nothing: 'o' is in matrix too, which comes first"
        ]


def test_a_setting_of_a_var_that_nothing_takes_is_refused(project, base):
    text = base + 'vars: {o: 16, p: "{{ o }}", q: "{{ p }}", alone: 1}\nopset: "{{ q }}"\n'
    assert project.recipe(text, {"o": "17"}).opset == 17
    assert project.faults(text, {"alone": "2"}) == [
        "--set alone: this changes nothing: no template of the recipe takes the var 'alone'"
    ]
    (fault,) = project.faults(base + "vars: {opset: 16}\nopset: 17\n", {"opset": "18"})
    assert "changes nothing" in fault


@pytest.mark.parametrize(
    ("key", "fix"),
    [
        ("opsat", "write `--set opset=4`"),
        ("quantisation.int8", "write `--set quantization.int8=4`"),
        ("quantization.int8.per_chanel", "write `per_channel`"),
    ],
)
def test_a_misspelt_setting_has_the_one_that_is_meant(project, base, key, fix):
    more = "calibration: {data: models/model.py:samples, samples: 2}\nquantization: {int8: {mode: dynamic}}\n"
    with pytest.raises(RecipeErrors) as raised:
        project.recipe(base + more, {key: "4"})
    assert raised.value.faults[0].fix == fix
