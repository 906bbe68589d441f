import contextlib
import os
import pickle
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onnxbuild.catalog import SECTIONS
from onnxbuild.core.errors import RecipeErrors, UsageError
from onnxbuild.core.params import to_json
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint, Location, Recipe
from onnxbuild.core.target import CPU_TARGET, Link, Target, TargetGates
from onnxbuild.expansion.limits import Budgets, ReleaseOptions
from onnxbuild.expansion.scope import TargetOptions
from onnxbuild.onnxkit.accuracy.tolerances import Tolerance, VariantTolerances
from onnxbuild.project_folder import find_project
from onnxbuild.recipe.load import load_recipes
from onnxbuild.steps.optimize import OptimizeOptions
from onnxbuild.steps.quantize_dynamic import DynamicOptions
from tests.examples import examples

FULL = """\
# a recipe with every part
version: 1
name: minilm
description: for people
model:
  entrypoint: models/model.py:load
  args: {hidden: 16}
dummy_inputs:
  input_ids:      {dtype: int64, shape: [batch, sequence], low: 0, high: 30522}
  attention_mask: {dtype: int64, shape: [batch, sequence], fill: 1}
outputs: [last_hidden_state]
dynamic_axes:
  sequence: {min: 1, max: 512, example: 16}
  batch:    {min: 1, max: 64, example: 2}
opset: 17
quantization:
  fp32: none
  small: {mode: dynamic, per_channel: false, optimize: {level: basic},
          validate: {cosine_min: 0.9, outputs: {last_hidden_state: {atol: 1}}}}
  still: static
providers: [{cuda: {device_id: 1, use_tf32: true, require: true}}, cpu]
optimize: {level: none, num_heads: 12}
reference: {seed: 3, samples: models/model.py:samples, points: [{batch: 4}]}
calibration: {samples: 5, data: {entrypoint: "models/model.py:samples", args: {n: 1}}}
evaluate: {data: "models/model.py:samples", metric: "models/model.py:score", max_drop: 1}
"""


def test_a_recipe_with_every_part_gives_typed_parts(project):
    recipe = project.recipe(FULL)
    assert (recipe.name, recipe.opset, recipe.outputs) == ("minilm", 17, ("last_hidden_state",))
    assert recipe.location == Location("recipes/demo.yaml", 1, 1)
    assert recipe.model == Entrypoint(
        "recipes/models/model.py:load", {"hidden": 16}, roots=("recipes/models", "recipes", ".")
    )
    assert recipe.inputs == (
        DummyInput("input_ids", "int64", ("batch", "sequence"), low=0, high=30522),
        DummyInput("attention_mask", "int64", ("batch", "sequence"), fill=1),
    )
    assert recipe.axes == (Axis("sequence", 1, 512, 16), Axis("batch", 1, 64, 2))
    cuda = Target("cuda", (Link("cuda", {"device_id": "1", "use_tf32": "1"}),))
    assert recipe.targets == (cuda, CPU_TARGET)
    assert recipe.gates == {"cuda": TargetGates("all"), "cpu": TargetGates("one")}
    assert set(recipe.entrypoints) == {"samples", "calibration", "evaluation", "metric"}
    assert recipe.entrypoints["calibration"].args == {"n": 1}


def test_a_variants_options_and_own_sections_are_typed(project):
    fp32, small, still = project.recipe(FULL).variants
    assert (fp32.name, fp32.mode, fp32.options, fp32.sections) == ("fp32", "none", None, {})
    assert small.options == DynamicOptions(per_channel=False)
    assert small.sections == {
        "validate": VariantTolerances(
            cosine_min=0.9, outputs={"last_hidden_state": Tolerance(atol=1.0)}
        ),
        "optimize": OptimizeOptions(level="basic", num_heads=12),  # over the recipe's own
    }
    assert (still.mode, still.precision) == ("static", "int8")
    assert str(small.location) == "recipes/demo.yaml:18:3"


def test_every_section_of_the_catalog_is_there_with_its_defaults(project, base):
    recipe = project.recipe(base)
    assert set(recipe.sections) == set(SECTIONS) > {"export", "validate", "release", "target"}
    for name, section in SECTIONS.items():
        assert recipe.sections[name] == section.options()
    assert recipe.sections["release"] == ReleaseOptions()
    assert recipe.sections["target"] == TargetOptions()


def test_budgets_of_a_release_are_read_and_misspelled_ones_reported(project, base):
    recipe = project.recipe(f"{base}release: {{budgets: {{size_increase: 0.05}}}}\n")
    assert recipe.sections["release"] == ReleaseOptions(Budgets(size_increase=0.05))
    said = project.faults(f"{base}release: {{budgets: {{size_increse: 0.05}}}}\n")
    assert "did you mean 'size_increase'?" in str(said)


@pytest.mark.parametrize(
    ("mode", "name"), [("none", "fp32"), ("fp16", "fp16"), ("dynamic", "int8")]
)
def test_a_single_mode_is_short_for_a_variant_named_by_its_precision(project, base, mode, name):
    recipe = project.recipe(base + f"quantization: {mode}\n")
    assert [(v.name, v.mode) for v in recipe.variants] == [(name, mode)]
    assert f"quantization.{name}" in recipe.lines


def test_optimize_takes_a_level_alone(project, base):
    recipe = project.recipe(base + "optimize: none\n")
    assert recipe.sections["optimize"] == OptimizeOptions(level="none")


@pytest.mark.parametrize("section", [name for name, each in SECTIONS.items() if each.takes_names])
def test_a_list_of_names_is_short_for_a_mapping_with_all_defaults(project, base, section):
    names = [
        key for key in SECTIONS[section].options.added if key not in ("compiled", "genai")
    ]  # they need a provider, or a state
    mapping = ", ".join(f"{each}: {{}}" for each in names)
    listed, mapped = (
        project.recipe(f"{base}{section}: {text}\n")
        for text in (f"[{', '.join(names)}]", f"{{{mapping}}}")
    )
    assert listed.sections[section] == mapped.sections[section]
    assert set(listed.sections[section].requested) == set(names)


def test_the_text_of_a_file_outside_of_the_project_is_not_shown(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    for text in ("root:x:0:0\n", "password: [secret\n", "opset: secret\n"):
        (tmp_path / "other").write_text(text)
        (project / "a.yaml").write_text(
            "extends: ../other\nversion: 1\nname: a\nmodel: {onnx: m}\n"
        )
        with pytest.raises(RecipeErrors) as caught:
            load_recipes(project / "a.yaml", project=project)
        said = str(caught.value)
        assert f"{tmp_path}/other:" in said
        assert "its text is not shown" in said
        assert "secret" not in said
        assert "root" not in said.replace(str(tmp_path), "")


def test_lines_name_every_key_of_the_recipe(project):
    lines = project.recipe(FULL).lines
    assert str(lines["opset"]) == "recipes/demo.yaml:15:1"
    assert str(lines["dummy_inputs.attention_mask"]) == "recipes/demo.yaml:10:3"
    assert str(lines["dynamic_axes.batch.max"]) == "recipes/demo.yaml:14:22"
    assert str(lines["quantization.small.per_channel"]) == "recipes/demo.yaml:18:26"
    assert str(lines["evaluate.metric"]) == "recipes/demo.yaml:25:45"


def test_a_recipe_can_be_pickled_and_written_as_json(project):
    recipe = project.recipe(FULL)
    assert pickle.loads(pickle.dumps(recipe)) == recipe
    assert isinstance(to_json(recipe), dict)


def test_comments_and_layout_change_no_part_of_a_recipe(project, base):
    def parts(recipe: Recipe):
        return recipe.name, recipe.model, recipe.inputs, recipe.axes, recipe.sections

    assert parts(project.recipe(base)) == parts(project.recipe(f"# note\n\n{base}"))


def test_a_missing_recipe_is_a_usage_error_that_guesses(project, base):
    project.load(base)
    with pytest.raises(UsageError) as caught:
        load_recipes(project.folder / "recipes/dem.yaml", project=project.folder)
    assert "there is no recipe" in caught.value.what
    assert "did you mean 'demo.yaml'?" in caught.value.what
    assert "demo.yaml" in caught.value.fix
    with pytest.raises(UsageError, match="there is no recipe"):
        load_recipes(project.folder / "nowhere/dem.yaml", project=project.folder)


def test_a_recipe_named_from_the_projects_root_is_found_in_its_folder_of_recipes(project, base):
    project.load(base)
    with pytest.raises(UsageError, match="did you mean 'recipes/demo\\.yaml'") as caught:
        load_recipes(project.folder / "demo.yaml", project=project.folder)
    assert "recipes/demo.yaml" in caught.value.fix
    with pytest.raises(UsageError) as caught:
        load_recipes(project.folder / "zzz.yaml", project=project.folder)
    assert "did you mean" not in caught.value.what


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_recipe_that_may_not_be_read_is_a_usage_error(project, base):
    file = project.write("recipes/closed.yaml", base)
    file.chmod(0)
    with pytest.raises(UsageError, match="can't read recipe"):
        load_recipes(file, project=project.folder)


def test_the_project_is_the_nearest_folder_with_a_mark(tmp_path):
    (tmp_path / "a/b/c").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    assert find_project(tmp_path / "a/b/c/r.yaml") == tmp_path
    (tmp_path / "a/pyproject.toml").touch()
    assert find_project(tmp_path / "a/b/c/r.yaml") == tmp_path / "a"
    assert find_project(tmp_path / "a/b/../r.yaml") == tmp_path / "a"


def test_importing_the_loader_loads_no_yaml_no_schema_and_no_framework():
    code = (
        "import sys, onnxbuild.recipe.load, onnxbuild.project_folder\n"
        "print([m for m in ('yaml', 'jinja2', 'jsonschema', 'torch', 'numpy', 'onnx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_loading_a_recipe_without_templates_imports_no_jinja(project, base):
    file = project.write("recipes/demo.yaml", base)
    code = (
        "import sys, pathlib\n"
        "from onnxbuild.recipe.load import load_recipes\n"
        f"load_recipes(pathlib.Path({str(file)!r}), project=pathlib.Path({str(project.folder)!r}))\n"
        "print([m for m in ('jinja2', 'torch', 'numpy', 'onnx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


_QUIET = settings(
    deadline=None,
    max_examples=examples(150),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


_WORDS = st.sampled_from(
    ["version", "name", "model", "dummy_inputs", "dynamic_axes", "quantization", "int8", "mode",
     "dynamic", "static", "validate", "outputs", "providers", "cpu", "vars", "matrix", "extends",
     "{{ a }}", "{{ a", "optimize", "none", "points", "shape", "dtype", "int64", "batch", "min",
     "entrypoint", "models/model.py:load", "files", "*.py", "env", "evaluate", "data", "x"]
)  # fmt: skip
_VALUES = st.recursive(
    _WORDS | st.integers(-5, 100) | st.booleans() | st.none() | st.floats(-2, 2),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(_WORDS, below, max_size=4),
    max_leaves=15,
)


@pytest.mark.sampled
@given(value=st.dictionaries(_WORDS, _VALUES, max_size=10), kept=st.integers(0, 3))
@_QUIET
def test_any_tree_of_a_recipes_words_loads_or_raises_recipe_errors(project, value, kept):
    import yaml

    sound = {
        "version": 1,
        "name": "demo",
        "model": "models/model.py:load",
        "dummy_inputs": {"x": {"dtype": "int64", "shape": [2]}},
    }
    value.update(list(sound.items())[: kept + 1])
    file = project.write("recipes/demo.yaml", yaml.safe_dump(value))
    with contextlib.suppress(RecipeErrors):
        load_recipes(file, project=project.folder)


_HOSTILE = {
    "unknown keys": "".join(f"key{n}: {n}\n" for n in range(4_900)),
    "a fault in each of many combinations": f"matrix: {{a: {list(range(2_000))}}}\nopset: 99\n",
    "a long word": "description: " + "x" * 1_000_000,
    "nested keys": "? " * 400_000,
}


@pytest.mark.parametrize("name", _HOSTILE)
def test_a_hostile_file_ends_in_recipe_errors(project, base, name):
    assert project.faults(base + _HOSTILE[name])


def test_a_recipe_that_names_no_frontend_has_that_of_pytorch(project, base):
    assert project.recipe(base).frontend == "pytorch"
    assert project.recipe(f"{base}frontend: pytorch\n").frontend == "pytorch"
    with pytest.raises(RecipeErrors, match=r"frontend is 'torch'; expected .*'pytorch'"):
        project.recipe(f"{base}frontend: torch\n")
