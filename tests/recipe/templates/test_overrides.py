from __future__ import annotations

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


def test_a_template_can_be_set(project, base):
    assert project.recipe(base + "vars: {o: 17}\n", {"opset": "{{ o }}"}).opset == 17


def test_extends_can_not_be_set(project, base):
    (fault,) = project.faults(base, {"extends": "x.yaml"})
    assert "no key of the recipe" in fault


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


def test_other_names_of_the_matrix_keep_their_values(project, base):
    text = base + 'matrix: {o: [17, 18], k: [1, 2]}\nopset: "{{ o }}"\n'
    names = [recipe.name for recipe in project.load(text, {"o": "20"}).recipes]
    assert names == ["demo@o=20,k=1", "demo@o=20,k=2"]


def test_names_of_a_base_are_set_too(project, base):
    project.write("recipes/base.yaml", base + SWEPT)
    recipe = project.recipe("extends: base.yaml\n", {"o": "19"})
    assert (recipe.name, recipe.opset) == ("demo@o=19", 19)
    project.write("recipes/base.yaml", base + 'vars: {o: 16}\nopset: "{{ o }}"\n')
    recipe = project.recipe("extends: base.yaml\nmatrix: {o: [17, 18]}\n", {"o": "19"})
    assert (recipe.name, recipe.opset) == ("demo@o=19", 19)


def test_a_var_takes_the_place_of_a_name_that_the_base_sweeps(project, base):
    project.write("recipes/base.yaml", base + 'matrix: {o: [17, 18], k: [1]}\nopset: "{{ o }}"\n')
    recipe = project.recipe("extends: base.yaml\nvars: {o: 20}\n")
    assert (recipe.name, recipe.opset) == ("demo@k=1", 20)
    project.write("recipes/base.yaml", base + 'matrix: {o: [17, 18]}\nopset: "{{ o }}"\n')
    recipe = project.recipe("extends: base.yaml\nvars: {o: 20}\n", {"o": "21"})
    assert (recipe.name, recipe.opset) == ("demo", 21)


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


def test_a_var_whose_only_taker_is_set_as_well_is_no_fault(project, base):
    """`diagnose RECIPE:VARIANT --set bits=4` sets the variant as a whole, once it tries remedies."""
    text = base + 'vars: {mode: dynamic}\nquantization: {q: {mode: "{{ mode }}"}}\n'
    settings = {"mode": "static", "quantization.q": "{mode: fp16}"}
    assert project.recipe(text, settings).variants[0].mode == "fp16"


@pytest.mark.parametrize(
    ("key", "fix"),
    [
        ("opste", "write `--set opset=1`"),
        ("benchmrk.threads", "write `--set benchmark.threads=1`"),
        ("nothing.alike", "name a var of the recipe, or a dotted key such as `quantization.int8.per_channel`"),
    ],
)  # fmt: skip
def test_a_misspelt_key_has_the_setting_that_is_meant(project, base, key, fix):
    with pytest.raises(RecipeErrors) as caught:
        project.recipe(base, {key: "1"})
    assert [each.fix for each in caught.value.faults] == [fix]


def test_a_section_that_is_false_is_left_out(project, base):
    with pytest.raises(RecipeErrors) as caught:
        project.recipe(base + "benchmark: false\n")
    assert [each.fix for each in caught.value.faults] == ["remove it"]


@pytest.mark.parametrize(
    ("key", "value", "fix"),
    [
        ("dtype", "int32", "write `--set dummy_inputs.ids.dtype=int32`"),
        ("calibration:samples", "4", "write `--set calibration.samples=4`"),
        ("calibration[samples]", "4", "write `--set calibration.samples=4`"),
        ("calibration.samples ", " 4", "write `--set calibration.samples=4`"),
        ("calibration.sample", "5", "write `--set calibration.samples=5`"),
        ("int8.per_channel", "true", "write `--set quantization.int8.per_channel=true`"),
        ("int8.per_chanel", "true", "write `--set quantization.int8.per_chanel=true`"),
        (
            "quantization.int8.per_chanel",
            "true",
            "write `--set quantization.int8.per_channel=true`",
        ),
        ("batch.max", "4", "write `--set dynamic_axes.batch.max=4`"),
        ("demo.opset", "17", "write `--set opset=17`"),
        ("provider", "[cpu]", "write `--set 'providers=[cpu]'`"),
        ("mode", "static", "write `--set quantization.int8.mode=static`"),
        ("opset", "v17", "write `--set opset=17`"),
        (
            "opset",
            "17,calibration.samples=4",
            "write `--set opset=17 --set calibration.samples=4`",
        ),
        ("outputs", "logits", "write `--set 'outputs=[logits]'`"),
        (
            "dummy_inputs.ids.shape[0]",
            "4",
            "set `dummy_inputs.ids.shape` as a whole, or edit the recipe",
        ),
    ],
)
def test_the_fix_of_a_setting_is_the_whole_setting_to_type(project, base, key, value, fix):
    more = "calibration: {data: models/model.py:samples, samples: 2}\nquantization: {int8: {mode: dynamic}}\n"
    with pytest.raises(RecipeErrors) as raised:
        project.recipe(base + more, {key: value})
    assert [each.fix for each in raised.value.faults] == [fix]
