import pytest

from onnxbuild.core.errors import RecipeErrors

CHILD = "extends: base/base.yaml\nname: child\n"


def test_mappings_are_merged_and_lists_and_scalars_replaced(project, base):
    project.write(
        "recipes/base/base.yaml",
        base.replace("models/", "../models/")
        + "outputs: [a, b]\nopset: 17\nquantization: {fp32: none, int8: {mode: dynamic, per_channel: false}}\n",
    )
    recipe = project.recipe(
        CHILD + "outputs: [c]\nquantization: {int8: {weight_type: uint8}, fp16: fp16}\n"
    )
    assert (recipe.name, recipe.opset, recipe.outputs) == ("child", 17, ("c",))
    assert [variant.name for variant in recipe.variants] == ["fp32", "int8", "fp16"]
    options = recipe.variants[1].options
    assert (options.per_channel, options.weight_type) == (False, "uint8")


def test_paths_of_a_base_are_relative_to_the_base(project, base):
    project.write("shared/models/model.py", "def load(): ...\n")
    project.write("shared/weights.bin", "x")
    project.write(
        "shared/base.yaml",
        base.replace(
            "model: models/model.py:load",
            "model: {entrypoint: models/model.py:load, files: [weights.bin]}",
        ),
    )
    recipe = project.recipe("extends: ../shared/base.yaml\nname: child\n")
    assert recipe.model.target == "shared/models/model.py:load"
    assert recipe.model.files == ("shared/weights.bin",)
    assert recipe.model.roots == ("shared/models", "shared", ".")
    assert str(recipe.lines["model"]) == "shared/base.yaml:3:1"
    assert str(recipe.lines["name"]) == "recipes/demo.yaml:2:1"


def test_every_file_of_the_chain_is_reported_as_read(project, base):
    project.write("recipes/base/root.yaml", base.replace("models/", "../models/"))
    project.write("recipes/base/base.yaml", "extends: root.yaml\n")
    loaded = project.load(CHILD)
    names = [file.relative_to(project.folder).as_posix() for file in loaded.files]
    assert names == ["recipes/demo.yaml", "recipes/base/base.yaml", "recipes/base/root.yaml"]


def test_a_recipe_that_extends_itself_is_a_circle(project):
    (fault,) = project.faults("extends: demo.yaml\n")
    assert fault == (
        "recipes/demo.yaml:1:10: extends runs in a circle: recipes/demo.yaml -> recipes/demo.yaml"
    )


def test_faults_of_a_base_are_reported_at_the_base(project, base):
    project.write("recipes/base/base.yaml", base.replace("models/", "../models/") + "opset: 5\n")
    assert project.faults(CHILD) == [
        "recipes/base/base.yaml:6:8: opset is 5; expected an integer from 11 to 24"
    ]


def test_extends_takes_a_plain_path(project, base):
    assert "can't be a template" in project.faults('extends: "{{ a }}.yaml"\n')[0]
    assert "extends is a list; expected the path" in project.faults("extends: [a.yaml]\n")[0]
    assert "can't be read" in project.faults("extends: models\n")[0]
    assert project.faults('extends: "a\\0b"\n')


@pytest.mark.parametrize(
    ("written", "fix"),
    [
        ("shared/base.yaml", "write `extends: ../shared/base.yaml`"),
        ("none/other.yaml", "write a path relative to this file"),
    ],
)
def test_a_base_that_is_not_there_is_named_by_the_path_that_is(project, written, fix):
    project.write("shared/base.yaml", "version: 1\n")
    with pytest.raises(RecipeErrors) as caught:
        project.load(f"extends: {written}\nname: child\n")
    assert [each.fix for each in caught.value.faults] == [fix]
