"""The order of releases, by their versions."""

import random
from dataclasses import replace

import pytest

from onnxbuild.core.errors import UsageError
from onnxbuild.core.graph import PACKAGE
from onnxbuild.host.host import HostFacts
from onnxbuild.recipe.load import load_recipes
from onnxbuild.release_format.about import (
    ReleaseSource,
    Title,
    about,
    check_version,
    name_of,
    version_order,
)
from onnxbuild.resolver import resolve

RECIPE = """\
version: 1
name: {name}
model: model.py:load
dummy_inputs: {{x: {{dtype: float32, shape: [batch, 4]}}}}
dynamic_axes: {{batch: {{min: 1, max: 8, example: 2}}}}
quantization: {{fp32: none, int8: dynamic}}
"""


@pytest.fixture
def reported(tmp_path):
    def of(text, packaged=()):
        (tmp_path / "model.py").write_text("def load(): ...\n")
        (tmp_path / "file.yaml").write_text(text)
        recipes = load_recipes(tmp_path / "file.yaml", project=tmp_path).recipes
        graph = resolve(recipes, HostFacts("x86_64", frozenset({"avx2"})))
        title = Title(name_of(recipes, "file"), "1.0", "recipe/file.yaml", "recipe/file.lock")
        return about(title, recipes, graph, ReleaseSource("c" * 40, (), 0), packaged), graph

    return of


def test_one_recipe_lies_under_its_variants(reported):
    release, graph = reported(RECIPE.format(name="x"))
    assert release["name"] == "x"
    assert list(release["variants"]) == ["fp32", "int8"]
    assert release["variants"]["int8"] == {
        "recipe": "x",
        "variant": "int8",
        "bundle": "variants/int8",
        "step": "x:int8/package",
        "golden": "golden",
        "reference": "x:reference",
        "benchmarks": {"cpu": "x:benchmark"},
    }
    assert release["reports"]["reports/int8/check.json"] == "x:int8/check"
    assert release["reports"]["reports/benchmark.json"] == "x:benchmark"
    assert set(release["reports"].values()) <= set(graph.steps)


def test_packages_stay_out_of_a_release(tmp_path):
    (tmp_path / "model.py").write_text("def load(): ...\n")
    (tmp_path / "file.yaml").write_text(RECIPE.format(name="x"))
    recipes = load_recipes(tmp_path / "file.yaml", project=tmp_path).recipes
    graph = resolve(recipes, HostFacts("x86_64", frozenset({"avx2"})))
    first = graph.deliverables[0]
    package = replace(first, name="fp32-box", family=PACKAGE)
    graph = replace(graph, deliverables=(*graph.deliverables, package))
    title = Title("x", "1.0", "recipe/file.yaml", "recipe/file.lock")
    release = about(title, recipes, graph, ReleaseSource("c" * 40, (), 0), ())
    held = [name for key in ("variants", "formats", "ahead_of_time") for name in release[key]]
    assert held == ["fp32", "int8"]


def test_a_matrix_lies_under_its_recipes_and_names_the_steps_that_they_share(reported):
    release, graph = reported(
        RECIPE.format(name="x") + "matrix: {opset: [17, 18]}\nopset: '{{ opset }}'\n"
    )
    assert release["name"] == "file"
    assert list(release["variants"]) == [
        f"x@opset={opset}/{variant}" for opset in (17, 18) for variant in ("fp32", "int8")
    ]
    second = release["variants"]["x@opset=18/int8"]
    assert second["bundle"] == "variants/x@opset=18/int8"
    assert second["golden"] == "golden/x@opset=18"
    assert second["reference"] == "x@opset=17:reference"  # equal, so built once
    steps = {each["step"] for each in release["variants"].values()}
    assert len(steps) == 4
    assert steps <= set(graph.steps)
    assert "reports/x@opset=18/benchmark.json" in release["reports"]


COMPONENTS = """\
version: 1
name: x
dummy_inputs: {x: {dtype: float32, shape: [batch, 4]}}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
packages: {wheel: {}}
components:
  one: {model: model.py:load}
  two: {model: {entrypoint: model.py:load, args: {a: 1}}, quantization: {fp32: none, int8: dynamic}}
"""


def test_components_lie_under_their_names(reported):
    release, graph = reported(COMPONENTS, ("x@two",))
    assert release["name"] == "x"
    assert list(release["variants"]) == ["one/fp32", "two/fp32", "two/int8"]
    assert release["variants"]["two/int8"] == {
        "recipe": "x@two",
        "variant": "int8",
        "bundle": "variants/two/int8",
        "step": "x@two:int8/package",
        "golden": "golden/two",
        "reference": "x@two:reference",
        "benchmarks": {"cpu": "x@two:benchmark"},
    }
    assert list(release["packages"]) == ["two/fp32-wheel", "two/int8-wheel"]
    assert release["packages"]["two/int8-wheel"]["of"] == "two/int8"
    assert release["reports"]["reports/one/check.json"] == "x@one:check"
    assert set(release["reports"].values()) <= set(graph.steps)


def test_components_of_a_matrix_lie_under_their_recipes(reported):
    release, _ = reported(COMPONENTS + "matrix: {opset: [18]}\nopset: '{{ opset }}'\n")
    assert release["name"] == "file"
    assert next(iter(release["variants"])) == "x@one,opset=18/fp32"


@pytest.mark.parametrize("version", ["1", "2026_01"])
def test_versions_that_people_use_are_taken(version):
    check_version(version)


@pytest.mark.parametrize("version", ["", "1 0", ".1", "1" * 65])
def test_what_can_not_stand_in_a_file_name_is_no_version(version):
    with pytest.raises(UsageError, match="is no version"):
        check_version(version)


def test_what_is_next_to_the_variants_has_sections_of_its_own(reported):
    release, graph = reported(
        RECIPE.format(name="x")
        + "formats: [onnx, torchscript]\nahead_of_time: {variants: [int8], ort: {}}\n"
        + "providers: [cuda, cpu]\n"
    )
    assert release["formats"] == {
        "torchscript": {
            "recipe": "x",
            "variant": "torchscript",
            "bundle": "formats/torchscript",
            "step": "x:torchscript/package",
            "golden": "golden",
            "reference": "x:reference",
            "benchmarks": {"cpu": "x:benchmark-cpu"},
        }
    }
    assert list(release["ahead_of_time"]) == ["int8-ort"]
    made = release["ahead_of_time"]["int8-ort"]
    assert (made["bundle"], made["step"]) == ("ahead-of-time/int8-ort", "x:int8-ort/package")
    assert made["benchmarks"] == {}
    assert release["reports"]["reports/int8-load-times.json"] == "x:int8-load-times"
    assert {made["step"], *release["reports"].values()} <= set(graph.steps)


def test_bundles_that_take_one_size_alone_share_golden_files_of_their_own(reported):
    release, _ = reported(
        RECIPE.format(name="x")
        + "session: {free_dimensions: {batch: 2}}\nahead_of_time: {optimized: {}}\n"
    )
    bundles = {**release["variants"], **release["ahead_of_time"]}
    assert {each["golden"] for each in bundles.values()} == {"golden-fp32"}
    assert {each["reference"] for each in bundles.values()} == {"x:fp32/reference"}


IN_ORDER = [
    "0.9.0", "0.10.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.0.0-beta.11",
    "1.0.0-rc.1", "1.0.0", "1.0.1", "1.2", "1.10", "2.0.0-rc.1+of.mine", "2.0.0",
]  # fmt: skip


def test_numbers_sort_as_numbers_and_a_candidate_is_before_its_release():
    shuffled = random.Random(0).sample(IN_ORDER, len(IN_ORDER))
    assert sorted(shuffled, key=version_order) == IN_ORDER
