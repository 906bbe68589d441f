MATRIX = """\
vars: {half: "{{ size // 2 }}", quarter: "{{ half // 2 }}", label: 3}
matrix: {size: [8, 16], kind: [a/b, true]}
"""


def test_a_matrix_gives_one_recipe_for_each_combination(project, head):
    recipes = project.load(
        head
        + MATRIX
        + 'dummy_inputs: {ids: {dtype: int64, shape: [batch, "{{ size }}"], high: 10}}\n'
        + 'dynamic_axes: {batch: {min: 1, max: "{{ half }}", example: "{{ quarter }}"}}\n'
    ).recipes
    assert [recipe.name for recipe in recipes] == [
        "demo@size=8,kind=a-b",
        "demo@size=8,kind=true",
        "demo@size=16,kind=a-b",
        "demo@size=16,kind=true",
    ]
    assert [recipe.inputs[0].shape for recipe in recipes[::2]] == [("batch", 8), ("batch", 16)]
    assert [recipe.axes[0].max for recipe in recipes[::2]] == [4, 8]
    assert [recipe.axes[0].example for recipe in recipes[::2]] == [2, 4]


def test_a_matrix_name_comes_before_a_var_of_the_same_name(project, base):
    recipes = project.load(
        base + 'vars: {o: 16}\nmatrix: {o: [17, 18]}\nopset: "{{ o }}"\n'
    ).recipes
    assert [recipe.opset for recipe in recipes] == [17, 18]


def test_a_var_may_hold_a_whole_part_of_the_recipe(project, head):
    recipe = project.recipe(
        head
        + "vars: {ids: {dtype: int64, shape: [batch], high: 10}, modes: {small: dynamic}}\n"
        + 'dummy_inputs: {ids: "{{ ids }}", mask: "{{ ids }}"}\n'
        + "dynamic_axes: {batch: {min: 1, max: 8, example: 2}}\n"
        + 'quantization: "{{ modes }}"\n'
    )
    assert [each.name for each in recipe.inputs] == ["ids", "mask"]
    assert "quantization.small" in recipe.lines
    assert str(recipe.variants[0].location) == "recipes/demo.yaml:7:15"


def test_values_that_give_one_name_twice_are_refused(project, base):
    (fault,) = project.faults(base + "matrix: {k: [a/b, a-b]}\n")
    assert fault == (
        "recipes/demo.yaml:6:1: two combinations of the matrix are both named 'demo@k=a-b'"
    )


def test_a_matrix_of_millions_is_refused_at_once(project, base):
    values = ", ".join(map(str, range(100)))
    text = base + f"matrix: {{a: [{values}], b: [{values}], c: [{values}]}}\n"
    (fault,) = project.faults(text)
    assert fault.endswith("matrix has 1,000,000 combinations; expected at most 10,000")


def test_a_fault_that_every_combination_has_is_reported_once(project, base):
    text = base + 'matrix: {k: [1, 2, 3]}\nopset: "{{ 5 }}"\n'
    assert project.faults(text) == [
        "recipes/demo.yaml:7:8: opset is 5; expected an integer from 11 to 24"
    ]


def test_a_fault_of_one_combination_names_its_value(project, base):
    text = base + 'matrix: {k: [17, 18, 99]}\nopset: "{{ k }}"\n'
    assert project.faults(text) == [
        "recipes/demo.yaml:7:8: opset is 99; expected an integer from 11 to 24"
    ]
