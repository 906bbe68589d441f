"""`pipeline` next to `components`: its names and folders, what a change builds again, faults; and a release that runs."""

import json
import subprocess

import pytest

from tests.cli.conftest import CheapProject, Project
from tests.cli.test_components import recipes_of, with_two
from tests.verification.conftest import edit_json
from tests.verification.forger import Forged

PIPELINE = "pipeline: {run: models/chain.py:run, samples: models/chain.py:samples}\n"
CHAIN = '''\
import numpy as np


def samples():
    """Yield what goes into the first model."""
    for n in range(4):
        yield np.random.default_rng(n).normal(size=(2, 4)).astype(np.float32)


def run(parts=None, sample=None):
    """Return the second model's classes of the first one's outputs."""
    if parts is None:
        return "cheap"
    hidden = parts.encoder(sample)["hidden"]
    logits = parts.decoder(input=hidden)["logits"]
    return {"logits": logits, "hidden": hidden}
'''


def with_pipeline(made: Project) -> None:
    with_two(made)
    made.write("models/chain.py", CHAIN)
    made.edit("two.yaml", "components:\n", f"{PIPELINE}components:\n")


@pytest.fixture
def two(cheap: CheapProject) -> CheapProject:
    with_pipeline(cheap)
    return cheap


def planned(two, *arguments: str) -> dict[str, str]:
    """Step -> state."""
    done = two("plan", *arguments, "--json")
    assert done.code == 0, done.err
    return {each["step"]: each["state"] for each in map(json.loads, done.out.splitlines())}


def test_each_variant_of_a_component_makes_one_of_the_pipeline(two):
    assert two("run", "two").code == 0
    out = two.folder / "artifacts/out/two@pipeline"
    assert sorted(path.name for path in out.iterdir()) == ["fp32", "int8"]
    assert two("run", "two").out.splitlines()[-1].startswith("up to date: ")


def test_variants_that_are_written_say_which_variant_each_component_has(two):
    two.edit("two.yaml", "pipeline: {", "pipeline: {variants: {small: {decoder: int8}}, ")
    steps = planned(two, "two@pipeline")
    assert "two@pipeline:small/validate" in steps
    assert "two@decoder:int8/package" in steps
    assert "two@decoder:fp32/package" not in steps
    assert "two@encoder:fp32/package" in steps


@pytest.mark.parametrize("arguments", [("two@pipeline:int8",), ("two", "--only", "pipeline:int8")])
def test_a_variant_of_the_pipeline_is_asked_for_by_its_name(two, arguments):
    if arguments[0] != "two":
        arguments = ("two", "--only", arguments[0])
    steps = planned(two, *arguments)
    assert "two@pipeline:int8/package" in steps
    assert not any(name.startswith("two@pipeline:fp32") for name in steps)


def test_a_component_alone_leaves_the_pipeline_out(two):
    assert recipes_of(two("plan", "two@decoder", "--json")) == {"two@decoder"}
    assert recipes_of(two("plan", "two", "--only", "decoder:int8", "--json")) == {"two@decoder"}


def test_a_change_in_one_component_builds_that_one_and_the_pipeline_alone(two):
    assert two("run", "two").code == 0
    two.edit("models/other.py", "x2", "x3")
    changed = {name for name, state in planned(two, "two").items() if state != "cached"}
    assert {name.partition(":")[0] for name in changed} == {"two@decoder", "two@pipeline"}


def test_all_variants_of_the_pipeline_are_measured_by_one_step(two):
    steps = json.loads(two("graph", "two", "--json").out)["steps"]
    (inputs,) = (each["inputs"] for each in steps if each["step"] == "two@pipeline:benchmark")
    assert inputs == {
        "model/fp32/encoder": "two@encoder:optimize",
        "model/fp32/decoder": "two@decoder:optimize",
        "model/int8/encoder": "two@encoder:optimize",
        "model/int8/decoder": "two@decoder:int8/quantize",
        "reference": "two@pipeline:reference",
    }
    assert two("run", "two").code == 0
    for variant in ("fp32", "int8"):
        out = two.folder / f"artifacts/out/two@pipeline/{variant}"
        assert (out / "benchmark.json").is_file()
    assert "two@pipeline:benchmark" not in planned(two, "two", "--set", "benchmark.measure=false")
    only = planned(two, "two", "--only", "two@pipeline:int8")
    assert "two@pipeline:benchmark" in only
    assert "two@encoder:benchmark" not in only


def test_a_change_of_the_callable_builds_the_pipeline_alone(two):
    assert two("run", "two").code == 0
    two.edit("models/chain.py", '"cheap"', '"cheaper"')
    changed = {name for name, state in planned(two, "two").items() if state != "cached"}
    assert {name.partition(":")[0] for name in changed} == {"two@pipeline"}


def test_a_recipe_without_a_pipeline_has_the_same_steps(two):
    with_it = planned(two, "two")
    two.edit("two.yaml", PIPELINE, "")
    without = planned(two, "two")
    assert set(with_it) - set(without) == {name for name in with_it if "@pipeline:" in name}
    assert set(without) <= set(with_it)


SCORED = "pipeline: {run: models/chain.py:run, samples: models/chain.py:samples, metric: models/chain.py:run, min: 0}\n"


def test_a_component_is_scored_and_searched_for_by_the_metric_of_the_whole(two):
    two.edit("two.yaml", PIPELINE, SCORED)
    two.edit(
        "two.yaml",
        "int8: dynamic}\n",
        "int8: dynamic, small: {mode: auto, goal: {max_drop: 0.1}}}\n    evaluate: {of: whole, max_drop: 0.1}\n",
    )
    steps = json.loads(two("graph", "two", "--json").out)["steps"]
    inputs = {each["step"]: each["inputs"] for each in steps}
    assert inputs["two@decoder:small/int8-dynamic/evaluate"] == {
        "model/encoder": "two@encoder:optimize",
        "model/decoder": "two@decoder:int8/quantize",
        "reference": "two@pipeline:reference",
    }
    assert "two@encoder:int8/evaluate" not in inputs


@pytest.mark.parametrize(
    "more",
    [
        "    sensitivity: {rank_by: metric}\n    fidelity: {data: models/chain.py:samples}\n",
        "",
        "    evaluate: {of: whole}\n",
    ],
)
def test_nodes_of_a_component_are_ranked_by_the_metric_of_the_whole(two, more):
    two.edit("two.yaml", PIPELINE, SCORED)
    two.edit(
        "two.yaml",
        "int8: dynamic}\n",
        f"int8: dynamic, kept: {{mode: dynamic, keep_most_sensitive: 0.1}}}}\n{more}",
    )
    steps = json.loads(two("graph", "two", "--json").out)["steps"]
    inputs = {each["step"]: each["inputs"] for each in steps}
    assert inputs["two@decoder:kept/quantize"]["sensitivity"] == "two@decoder:sensitivity"
    assert inputs["two@decoder:sensitivity"] == {
        "model": "two@decoder:optimize",
        "model/encoder": "two@encoder:optimize",
        "reference": "two@pipeline:reference",
    }


def test_data_of_the_component_rank_its_nodes_unless_the_metric_is_asked_for(two):
    two.edit("two.yaml", PIPELINE, SCORED)
    two.edit(
        "two.yaml",
        "int8: dynamic}\n",
        "int8: {mode: dynamic, keep_most_sensitive: 0.1}}\n    fidelity: {data: models/chain.py:samples}\n",
    )
    steps = json.loads(two("graph", "two", "--json").out)["steps"]
    inputs = {each["step"]: each["inputs"] for each in steps}
    assert inputs["two@decoder:sensitivity"] == {"model": "two@decoder:optimize"}


def test_each_combination_of_a_matrix_has_a_pipeline(two):
    two.edit(
        "two.yaml", "name: two\n", "name: two\nmatrix: {size: [17, 18]}\nopset: '{{ size }}'\n"
    )
    found = {name.partition(":")[0] for name in planned(two, "two")}
    assert {f"two@pipeline,size={size}" for size in (17, 18)} <= found


def test_a_recipe_in_full_has_the_pipeline_once(two):
    text = two("explain", "two").out
    assert text.count("\npipeline:") == 1
    assert two("run", "two").code == 0
    two.write("two.yaml", text)
    assert set(planned(two, "two").values()) == {"cached"}


FAULTS = {
    "no samples": (
        (PIPELINE, "pipeline: {run: models/chain.py:run}\n"),
        "two.yaml:7:1: pipeline has no samples; they are what it is run on\n  fix: add `samples: models/mine.py:CALLABLE`",
    ),
    "another component": (
        ("pipeline: {", "pipeline: {variants: {a: {decodr: int8}}, "),
        ("two.yaml:7:27: pipeline: variant 'a' names the component 'decodr', which is not there; did you mean 'decoder'?\n"
        "  fix: write decoder"),
    ),
    "another variant": (
        ("pipeline: {", "pipeline: {variants: {a: {decoder: int4}}, "),
        ("two.yaml:7:27: pipeline: component 'decoder' has no variant 'int4'; it has fp32, int8; did you mean 'int8'?\n"
        "  fix: write `decoder: int8`, or add it to its `quantization`"),
    ),
    "a metric without its least value": (
        ("pipeline: {", "pipeline: {metric: models/chain.py:run, "),
        ("two.yaml:7:1: pipeline has no min: `metric` scores the variants of few bits, and `min` is their least score\n"
        "  fix: add `min`"),
    ),
    "a key of built-in callables next to one's own": (
        ("pipeline: {", "pipeline: {temperature: 0.5, "),
        ("two.yaml:7:12: pipeline has `temperature`, which is for a `run` of onnxbuild's, such as `sample`\n"
        "  fix: remove `temperature`, or give it to the callable: `run: {entrypoint: ..., args: {...}}`"),
    ),
    "a score of the whole without a metric": (
        ("    quantization:", "    evaluate: {of: whole}\n    quantization:"),
        ("two.yaml:13:5: evaluate has no metric, and neither has `pipeline`\n"
        "  fix: add `metric: FILE.py:CALLABLE` to one of them"),
    ),
    "data of the whole": (
        ("    quantization:", "    evaluate: {of: whole, data: models/chain.py:run, metric: models/chain.py:run}\n    quantization:"),
        ("two.yaml:13:27: evaluate is of the whole, whose data are the samples of `pipeline`\n  fix: remove `data`"),
    ),
    "nodes ranked by a whole without a metric": (
        ("    quantization:", "    sensitivity: {table: true, rank_by: metric}\n    quantization:"),
        ("two.yaml:13:41: sensitivity ranks by the user's metric, and `pipeline` has none\n"
        "  fix: add `metric: FILE.py:CALLABLE` and `min` to it"),
    ),
    "a perplexity in a whole that decodes nothing": (
        ("int8: dynamic}", "int8: dynamic, small: {mode: auto, goal: {perplexity_ratio: 1.1}}}"),
        "the recipe has no `generate`\n  fix: add `generate: {prompts: FILE.py:CALLABLE}`, or, next to `components`, `pipeline: {run: greedy}`",
    ),
    "in a component": (
        ("  decoder:\n", "  decoder:\n    pipeline: {}\n"),
        ("two.yaml:12:5: component 'decoder' has `pipeline`, which belongs to the whole recipe\n"
        "  fix: move it next to `components`, or remove it"),
    ),
    "a component of its name": (
        ("  decoder:\n", "  pipeline:\n"),
        ("two.yaml:7:1: component 'pipeline' has the name of what `pipeline` makes of all components\n"
        "  fix: rename the component"),
    ),
    "below packages": (
        ("components:\n", "packages: [pipeline]\ncomponents:\n"),
        "two.yaml:8:12: key 'pipeline' is not an option of packages",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_of_a_pipeline_has_its_place_and_a_fix(two, case):
    (old, new), said = FAULTS[case]
    two.edit("two.yaml", old, new)
    done = two("lint", "two.yaml")
    assert done.code == 2
    assert said in done.err


def test_a_pipeline_without_components_is_a_fault(two):
    two.edit("tiny.yaml", "name: tiny\n", f"name: tiny\n{PIPELINE}")
    done = two("lint", "tiny.yaml")
    assert done.code == 2
    assert "pipeline runs components, and the recipe has none" in done.err


def test_a_verb_of_one_model_names_those_that_the_pipeline_holds(two):
    assert two("run", "two").code == 0
    done = two("inspect", "two@pipeline:int8")
    assert done.code == 2
    assert (
        "'int8' holds two@encoder:fp32 and two@decoder:int8; inspect works on one ONNX variant"
        in done.err
    )


def test_a_comparison_names_the_variants_that_the_pipeline_holds(two):
    assert two("run", "two").code == 0
    done = two("diff", "two@pipeline:int8", "two@pipeline:fp32")
    assert done.code == 2
    assert (
        "'int8' holds two@encoder:fp32 and two@decoder:int8; diff compares one variant with another\n"
        "  fix: write two@encoder:fp32" in done.err
    )


def test_an_input_from_its_own_component_is_a_fault(two):
    two.edit(
        "two.yaml",
        "    quantization:",
        "    dummy_inputs: {input: {shape: [batch, 4], from: decoder.logits}}\n    quantization:",
    )
    done = two("lint", "two.yaml")
    assert done.code == 2
    assert "input 'input' is from its own component, 'decoder'" in done.err


def with_real_pipeline(project: Project) -> None:
    """Write a pipeline whose components are built for real."""
    with_two(project)
    text = (project.folder / "two.yaml").read_text()
    project.write("models/chain.py", CHAIN)
    project.write(
        "two.yaml",
        text.replace("components:\n", f"{PIPELINE}components:\n")
        if "pipeline" not in text
        else text,
    )
    project.edit(
        "two.yaml",
        "    model: {entrypoint: models/tiny.py:load}\n",
        "    model: {entrypoint: models/tiny.py:load}\n    outputs: [hidden]\n",
    )
    project.edit(
        "two.yaml",
        "    quantization:",
        "    dummy_inputs: {input: {shape: [batch, 2], from: encoder.hidden}}\n    quantization:",
    )
    project.edit("models/other.py", "torch.nn.Linear(4, width)", "torch.nn.Linear(2, width)")


@pytest.mark.slow
def test_bench_measures_the_pipeline_alone_next_to_pytorch(project):
    with_real_pipeline(project)
    done = project("bench", "two@pipeline", "--set", "benchmark.max_time_s=0.5")
    assert done.code == 0, done.out + done.err
    assert done.ran.count("benchmark") == 1
    assert "two@pipeline on cpu:" in done.out
    assert "two@decoder on cpu:" not in done.out
    assert "at samples=4:" in done.out
    _, header, *rows = done.out.split("at samples=4:")[1].split("\n")[:5]
    for title in (
        "p50",
        "95 % of p50",
        "p90",
        "p99",
        "items/s",
        "vs pytorch",
        "time of components",
    ):
        assert title in header
    assert {row.split()[0] for row in rows} == {"fp32", "int8", "pytorch"}
    again = project("bench", "two@pipeline", "--json", "--set", "benchmark.max_time_s=0.5")
    assert "done    two@pipeline:benchmark" in again.err
    (report,) = json.loads(again.out)["two@pipeline"].values()
    assert report["points"][0]["results"]["int8"]["parts"].keys() == {"encoder", "decoder"}
    built = project("run", "two", "--set", "benchmark.measure=false")
    assert built.code == 0, built.out + built.err
    assert "two@pipeline:benchmark" not in built.out + built.err


@pytest.mark.slow
def test_a_release_holds_the_pipeline_and_verify_runs_it(project):
    def works(*arguments: str) -> str:
        done = project(*arguments)
        assert done.code == 0, (arguments, done.out, done.err)
        return done.out

    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *identity, *arguments], cwd=project.folder, check=True)

    with_real_pipeline(project)
    project.write(".gitignore", "/artifacts/\n/dist/\n__pycache__/\n")
    works("lock", "two.yaml")
    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "a commit")
    works("release", "two", "--version", "1.0.0")
    folder = project.folder / "dist/two-1.0.0"
    package = folder / "packages/pipeline/int8"
    about = json.loads((package / "pipeline.json").read_text())
    assert {name: each["variant"] for name, each in about["components"].items()} == {
        "encoder": "fp32",
        "decoder": "int8",
    }
    assert about["components"]["decoder"]["connections"] == {"input": "encoder.hidden"}
    for name, each in about["components"].items():
        bundle = folder / "variants" / name / each["variant"] / "model.onnx"
        assert (package / each["file"]).read_bytes() == bundle.read_bytes()
    said = works("verify", "dist/two-1.0.0", "--run", "--trust-programs")
    assert "ok      pipeline/fp32: " in said
    assert "ok      pipeline/int8: " in said
    other = Forged(folder)
    (package / "decoder/other.onnx").write_bytes((package / "encoder/model.onnx").read_bytes())
    edit_json(
        package / "pipeline.json",
        lambda about: about["components"]["decoder"].update(file="decoder/other.onnx"),
    )
    other.again_with_packages("pipeline/int8")
    done = project("verify", "dist/two-1.0.0")
    assert done.code == 4
    assert "its bytes differ: model.onnx is opened from decoder/other.onnx" in done.out
