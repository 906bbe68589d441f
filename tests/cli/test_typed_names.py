"""One name means one thing in every verb: `bert`, `bert:int8`, `recipes/llama.yaml:int8/quantize`."""

import json

import pytest

from onnxbuild.building.request import Request
from onnxbuild.core.errors import UsageError
from onnxbuild.document.recipe_names import TypedName
from onnxbuild.typed.recipe_files import recipe_file
from onnxbuild.typed.typed_names import find_name
from tests.cli.conftest import QUICK, RECIPE, CheapProject, make_cheap_project

BODY = (RECIPE + QUICK).replace("models/", "../models/")
BERT = BODY.replace("name: tiny", "name: bert").replace(
    "{fp32: none}", "{fp32: none, int8: dynamic}\npackages: {wheel: {}}\nahead_of_time: {ort: {}}"
)
SWEEP = (
    BODY.replace("name: tiny", "name: sweep")
    .replace(
        "{entrypoint: ../models/tiny.py:load}",
        "{entrypoint: ../models/tiny.py:load, args: {width: 9}}",
    )
    .replace("{fp32: none}", "{fp32: none, int8: dynamic}\nmatrix: {opset: [17, 18]}")
    + 'opset: "{{ opset }}"\n'
)
SPELLINGS = ("bert", "llama", "recipes/llama.yaml")
"""The recipe's name, its file's, and its path: bert is in llama.yaml."""


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> CheapProject:
    made = make_cheap_project(tmp_path_factory.mktemp("names") / "project")
    (made.folder / "tiny.yaml").unlink()
    made.write("recipes/llama.yaml", BERT)
    made.write("recipes/sweep.yaml", SWEEP)
    done = made("run")
    assert done.code == 0, done.out + done.err
    return made


@pytest.mark.parametrize("recipe", SPELLINGS)
def test_a_recipe_has_the_same_names_in_every_verb(built, recipe):
    for verb in ("run", "plan", "lint", "graph", "explain", "cache key"):
        done = built(*verb.split(), recipe)
        assert done.code == 0, (verb, done.err)
        assert "sweep" not in done.out, verb
    for verb in ("why", "log"):
        done = built(verb, f"{recipe}:int8/quantize")
        assert done.code == 0, (verb, done.err)
    every = built("plan", "--json").out.splitlines()
    part = built("plan", "--only", f"{recipe}:int8", "--json").out.splitlines()
    alone = built("plan", recipe, "--only", "int8", "--json").out.splitlines()
    assert part == alone
    assert 0 < len(part) < len(every)
    assert {json.loads(line)["step"].partition(":")[0] for line in part} == {"bert"}
    forced = built("run", "recipes", "--force", f"{recipe}:int8/quantize")
    assert (forced.code, forced.ran) == (0, ["int8/quantize"]), forced.err


@pytest.mark.parametrize("recipe", SPELLINGS)
def test_a_model_has_the_same_names_in_every_verb(built, recipe):
    for verb in ("inspect", "view"):  # what cheap kinds write is no model: the file was found
        done = built(verb, f"{recipe}:int8")
        assert "artifacts/out/bert/int8/model.onnx" in done.err, done.err
        assert "has no variant" not in done.err
    pushed = built("push", f"{recipe}:int8", "oci:layout:int8")
    assert pushed.code == 0, pushed.err
    compared = built("diff", f"{recipe}:int8", f"{recipe}:fp32")  # it looks for real kinds
    assert compared.err.startswith("error: bert:int8 is not built as the recipe stands\n")


def test_a_matrix_means_all_that_it_makes_and_a_combination_one(built):
    def planned(only: str) -> set[str]:
        lines = built("plan", "--only", only, "--json").out.splitlines()
        steps = {json.loads(line)["step"] for line in lines}
        return {step for step in steps if step.endswith("int8/quantize")}

    both = {"sweep@opset=17:int8/quantize", "sweep@opset=18:int8/quantize"}
    assert planned("sweep:int8") == planned("recipes/sweep.yaml:int8") == both
    assert planned("sweep@opset=18:int8") == {"sweep@opset=18:int8/quantize"}
    one = built("diff", "sweep@opset=17:int8", "sweep@opset=18:int8")
    assert one.err.startswith("error: sweep@opset=17:int8 is not built as the recipe stands\n")
    assert built("why", "sweep@opset=17:int8/quantize").code == 0


REFUSED = {
    "why sweep:export": (
        "'export' is a step of several recipes: sweep@opset=17:export, sweep@opset=18:export\n"
        "  fix: write sweep@opset=17:export"
    ),
    "why sweep@opset=19:export": (
        "recipes/sweep.yaml makes no 'sweep@opset=19'; it makes sweep@opset=17, sweep@opset=18\n"
        "  fix: did you mean 'sweep@opset=18'?"
    ),
    "inspect bert:int9": (
        "'bert' has no variant 'int9'; it has fp32, int8, fp32-ort, int8-ort\n"
        "  fix: did you mean 'int8'?"
    ),
    "diagnose bert": "'bert' is not RECIPE:VARIANT\n  fix: write bert:fp32 or bert:int8",
    "why bert:int8": (
        "there is no step 'int8'; there are int8/check, int8/package, int8/quantize, int8/validate\n"
        "  fix: write bert:int8/check"
    ),
    "why bert": "'bert' is not RECIPE:STEP\n  fix: write bert:export or bert:check",
    "run brt": (
        "there is no recipe 'brt'; recipes/ has llama, sweep\n"
        "  fix: give the path of a recipe file"
    ),
    "run bert:int8": (
        "'bert:int8' is a part of a recipe; a whole one is expected here\n"
        "  fix: write recipes/llama.yaml --only bert:int8"
    ),
    "run models/tiny.py:load": (
        "models/tiny.py:load is a callable, not a recipe\n"
        "  fix: write a first recipe: onnxbuild init models/tiny.py:load"
    ),
    "run --only brt:int8": (
        "--only brt:int8 names a recipe that is not among these: bert, sweep@opset=17 and sweep@opset=18\n"
        "  fix: write --only bert:int8"
    ),
}


@pytest.mark.parametrize("command", REFUSED)
def test_a_name_that_means_nothing_says_what_to_type(built, command):
    done = built(*command.split())
    assert (done.code, done.out, done.err) == (2, "", f"error: {REFUSED[command]}\n")


def test_what_is_not_built_is_built_by_the_fix(built):
    done = built("inspect", "bert:int8", "--store", "elsewhere")
    assert done.code == 2
    assert done.err.startswith("error: bert:int8 is not built: there is no ")
    assert "elsewhere/out/bert/int8/model.onnx" in done.err
    assert done.err.endswith(
        "  fix: onnxbuild run recipes/llama.yaml --only bert:int8 --store elsewhere\n"
    )


def test_a_name_is_parsed_at_its_last_colon(built, monkeypatch):
    monkeypatch.chdir(built.folder)
    assert TypedName.parse("int8/validate") == TypedName("", "int8/validate")
    found = find_name("llama:int8/quantize")
    assert (str(found.file), found.typed) == (
        "recipes/llama.yaml",
        TypedName("llama", "int8/quantize"),
    )
    assert recipe_file("bert") == recipe_file("llama") == "recipes/llama.yaml"
    with pytest.raises(UsageError, match="there is no recipe 'lama'"):
        recipe_file("lama")


def test_a_recipes_own_name_comes_before_another_files():
    files = {"bert": "recipes/other.yaml", "bert-base": "recipes/bert.yaml", "sweep@a=1": "s.yaml"}
    meant = {
        "bert": ["bert"],
        "other": ["bert"],
        "recipes/bert.yaml": ["bert-base"],
        "sweep": ["sweep@a=1"],
        "s.yaml": ["sweep@a=1"],
        "sweep@a=2": [],
        "x": [],
    }
    assert {text: TypedName(text, "int8").recipes_of(files) for text in meant} == meant
    assert TypedName("", "int8").recipes_of(files) == list(files)
    assert Request((), ("bert:int8",)).only == ("bert:int8",)
