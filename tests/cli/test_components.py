"""A recipe of several models, in every verb: all of it, one component, a variant of one."""

import json
import subprocess

import pytest

from onnxbuild.terminal.at_a_glance import answer
from tests.cli.conftest import QUICK, CheapProject, Project

TWO = """\
version: 1
name: two
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
dummy_inputs: {input: {dtype: float32, shape: [batch, 4]}}
outputs: [logits]
benchmark: {max_time_s: 0.1, min_samples: 3}
components:
  encoder:
    model: {entrypoint: models/tiny.py:load}
  decoder:
    model: {entrypoint: models/other.py:load, args: {width: 6}}
    quantization: {fp32: none, int8: dynamic}
"""


def with_two(made: Project) -> None:
    made.write("models/other.py", (made.folder / "models/tiny.py").read_text())
    made.write("two.yaml", TWO + QUICK)


@pytest.fixture
def two(cheap: CheapProject) -> CheapProject:
    with_two(cheap)
    return cheap


def recipes_of(done) -> set[str]:
    """Recipes whose steps are planned."""
    assert done.code == 0, done.err
    return {json.loads(line)["step"].partition(":")[0] for line in done.out.splitlines()}


def test_all_components_are_built_each_in_folders_of_its_own(two):
    done = two("run", "two")
    assert done.code == 0, done.err
    out = two.folder / "artifacts/out"
    made = {path.relative_to(out).as_posix() for path in out.glob("*/*/model.onnx")}
    assert made == {
        f"two@{each}/model.onnx" for each in ("encoder/fp32", "decoder/fp32", "decoder/int8")
    }
    assert two("run", "two").out.splitlines()[-1].startswith("up to date: ")


@pytest.mark.parametrize(
    "arguments",
    [("two@encoder",), ("two", "--only", "two@encoder"), ("two.yaml", "--only", "encoder")],
)
def test_one_component_is_built_by_its_name(two, arguments):
    assert recipes_of(two("plan", *arguments, "--json")) == {"two@encoder"}
    assert two("run", *arguments).code == 0
    assert [path.name for path in (two.folder / "artifacts/out").glob("two*")] == ["two@encoder"]


def test_only_counts_within_the_component_that_is_named(two):
    steps = two("plan", "two@decoder", "tiny", "--only", "int8/quantize", "--json")
    assert steps.code == 2  # tiny has no int8
    done = two("plan", "two@decoder", "--only", "fp32", "--json")
    assert recipes_of(done) == {"two@decoder"}
    assert not any("int8" in json.loads(line)["step"] for line in done.out.splitlines())
    two.edit("tiny.yaml", "load}", "load, args: {width: 3}}")
    both = two("plan", "two@decoder", "tiny", "--json")
    assert recipes_of(both) == {"two@decoder", "tiny"}


def test_a_change_in_one_component_builds_that_one_alone(two):
    assert two("run", "two").code == 0
    two.edit("models/other.py", "x2", "x3")
    planned = two("plan", "two", "--json").out.splitlines()
    looked_at = {each["step"] for each in map(json.loads, planned) if each["state"] != "cached"}
    assert "two@decoder:export" in looked_at
    assert {name.partition(":")[0] for name in looked_at} == {"two@decoder"}
    two.edit("two.yaml", "models/tiny.py:load}", "models/tiny.py:load}\n    opset: 17")
    planned = two("plan", "two@encoder", "--json").out.splitlines()
    assert any(json.loads(each)["step"] == "two@encoder:export" for each in planned)


def test_equal_steps_of_components_are_one(two):
    two.edit("two.yaml", "models/other.py:load, args: {width: 6}", "models/tiny.py:load")
    steps = {json.loads(line)["step"] for line in two("plan", "two", "--json").out.splitlines()}
    assert "two@encoder:export" in steps
    assert "two@decoder:export" not in steps


def test_a_component_that_is_gone_is_left_over(two):
    assert two("run", "two").code == 0
    two.edit("two.yaml", "  encoder:\n    model: {entrypoint: models/tiny.py:load}\n", "")
    done = two("run", "two")
    assert "left over: artifacts/out/two@encoder/fp32 (two.yaml no longer has it)" in done.err
    assert two("clean").code == 0
    assert not (two.folder / "artifacts/out/two@encoder").exists()


def test_a_recipe_in_full_has_all_components_and_builds_the_same(two):
    text = two("explain", "two").out
    assert text.startswith("# two: two.yaml in full, as onnxbuild understands it\nversion: 1\n")
    assert text.count("components:") == text.count("  decoder:\n") == 1
    assert two("run", "two").code == 0
    two.write("two.yaml", text)
    planned = [json.loads(line) for line in two("plan", "two", "--json").out.splitlines()]
    assert {each["state"] for each in planned} == {"cached"}


def test_each_combination_in_full_has_all_components(two):
    two.edit(
        "two.yaml", "name: two\n", "name: two\nmatrix: {size: [17, 18]}\nopset: '{{ size }}'\n"
    )
    first, second = two("explain", "two").out.split("---\n")
    assert first.startswith("# two@size=17: ")
    assert second.count("opset: 18") == 2
    assert recipes_of(two("plan", "two", "--json")) == {
        f"two@{name},size={size}" for name in ("encoder", "decoder") for size in (17, 18)
    }
    two.write("two.yaml", second)
    assert recipes_of(two("plan", "two", "--json")) == {
        f"two@{name},size=18" for name in ("encoder", "decoder")
    }


REFUSED = {
    "why two@encodr:export": (
        "two.yaml makes no 'two@encodr'; it makes two@decoder, two@encoder\n"
        "  fix: did you mean 'two@encoder'?"
    ),
    "lock two@encoder": (
        "'two@encoder' is one of the recipes of two.yaml; a whole file is expected here\n"
        "  fix: write two.yaml"
    ),
    "run two --only encodr": (
        "--only encodr is no variant or step of these recipes; the nearest of 16 are encoder, decoder and benchmark\n"
        "  fix: write one of them; to see all: onnxbuild graph two.yaml"
    ),
    "inspect two:fp32": (
        "'fp32' is a variant of several recipes: two@encoder:fp32, two@decoder:fp32\n"
        "  fix: write two@encoder:fp32"
    ),
}


@pytest.mark.parametrize("command", REFUSED)
def test_a_name_that_means_no_component_says_what_to_type(two, command):
    done = two(*command.split())
    assert (done.code, done.out, done.err) == (2, "", f"error: {REFUSED[command]}\n")


CONNECTED = TWO.replace("    model: {entrypoint: models/tiny.py:load}\n", "    model: {entrypoint: models/tiny.py:load}\n    outputs: [hidden]\n").replace(
    "    quantization: {fp32: none, int8: dynamic}\n",
    "    dummy_inputs: {input: {shape: [batch, 2], from: encoder.hidden}}\n    quantization: {fp32: none, int8: dynamic}\n",
)  # fmt: skip


@pytest.fixture
def connected(project: Project) -> Project:
    """Real models: the encoder's two outputs are the decoder's two inputs."""
    with_two(project)
    project.write("two.yaml", CONNECTED + QUICK)
    project.edit("models/other.py", "torch.nn.Linear(4, width)", "torch.nn.Linear(2, width)")
    return project


@pytest.mark.slow
def test_a_release_holds_all_components_and_every_verb_knows_them(connected):
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *identity, *arguments], cwd=connected.folder, check=True)

    def works(*arguments: str) -> str:
        done = connected(*arguments)
        assert done.code == 0, (arguments, done.out, done.err)
        return done.out

    connected.write(".gitignore", "/artifacts/\n/dist/\n__pycache__/\n")
    works("lock", "two.yaml")
    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "a commit")
    works("release", "two", "--version", "1.0.0")
    folder = connected.folder / "dist/two-1.0.0"
    about = json.loads((folder / "release.json").read_text())
    assert list(about["variants"]) == ["decoder/fp32", "decoder/int8", "encoder/fp32"]
    assert "reports/decoder/connections.json" in about["reports"]
    works("verify", "dist/two-1.0.0.tar", "--run")
    works("verify", "dist/two-1.0.0", "--rebuild")
    assert "two@encoder: " in works("reproduce", "two")
    works("report", "two@decoder", "--out", "page.html")
    page = (connected.folder / "page.html").read_text()
    assert "two@decoder" in page
    assert "two@encoder:export" in page  # the decoder's connections need it
    works("inspect", "two@decoder:int8")
    assert connected("diff", "two@decoder:int8", "two@decoder:fp32").code == 1
    connected.edit("models/other.py", "manual_seed(0)", "manual_seed(1)")
    built = connected("run", "two")
    assert built.code == 0, built.err
    ran = {line.split()[1] for line in built.out.splitlines() if line.startswith("run ")}
    assert "two@decoder:export" in ran
    assert not any(name.startswith("two@encoder:") for name in ran)
    assert "decoder" in connected("diff", "dist/two-1.0.0", "two").out


@pytest.mark.slow
def test_an_input_that_is_not_what_the_other_component_gives_fails_the_decoder_alone(connected):
    connected.edit("models/tiny.py", "torch.nn.Linear(width, 2)", "torch.nn.Linear(width, 3)")
    done = connected("run", "two", "--keep-going")
    assert done.code == 3
    words = "'hidden' of component 'encoder' is float32 [batch, 3]; the input 'input' takes float32 [batch, 2]"
    assert words in done.out + done.err


@pytest.mark.slow
def test_one_component_is_up_to_date_at_a_glance(connected, monkeypatch):
    assert connected("run", "two@encoder", "--only", "fp32/check").code == 0
    monkeypatch.chdir(connected.folder)
    for name, value in connected.cache.items():
        monkeypatch.setenv(name, value)
    found = answer(("run", "two@encoder", "--only", "fp32/check"))
    assert found is not None
    assert found[0][-1].startswith("up to date: ")
    assert answer(("run", "two@decoder", "--only", "fp32/check")) is None
