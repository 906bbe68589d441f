"""`onnxbuild diff`: the words that a user reads, of commits, variants, releases, folders and files."""

import html
import json
import os
import re
import shutil
import subprocess

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnxbuild.lock.text import read_lock
from onnxbuild.output.verbs import output_schema
from onnxbuild.recipe.schema.lean_jsonschema import validators
from tests.browser import assert_good, look_at
from tests.cli.conftest import CheapProject, Project

MODEL = """\
import torch


def load(scale=1.0, gelu=False):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.GELU() if gelu else torch.nn.ReLU(), torch.nn.Linear(8, 2)
    )
    with torch.no_grad():
        model[2].weight[1, 3] *= scale
    return model
"""
RECIPE = """\
version: 1
name: tiny
model: {entrypoint: models/tiny.py:load}
dummy_inputs:
  input: {dtype: float32, shape: [batch, 4]}
outputs: [logits]
dynamic_axes:
  batch: {min: 1, max: 8, example: 2}
opset: 18
quantization: {fp32: none, int8: {mode: dynamic, per_channel: true}}
benchmark: {max_time_s: 0.1, min_samples: 3}
"""
STEPS = (
    ("base", None, "", ""),
    ("weight", "models/tiny.py", "scale=1.0", "scale=1.5"),
    ("option", "tiny.yaml", "per_channel: true", "per_channel: false"),
    ("opset", "tiny.yaml", "opset: 18", "opset: 19"),
    ("gelu", "models/tiny.py", "gelu=False", "gelu=True"),
    ("fused", "tiny.yaml", "opset: 19", "opset: 20"),
)
WITH_LATENCY = re.compile(r"^latency .*\n(  .*\n)*", re.MULTILINE)


def git(project, *arguments):
    names = {
        f"GIT_{who}_{what}": "a@example.org"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    subprocess.run(
        ["git", *arguments], cwd=project.folder, env={**os.environ, **names}, check=True,
        capture_output=True,
    )  # fmt: skip


def save(path, *, value=0.0, kind="Relu"):
    """A model of one MatMul and one more node."""
    weights = np.arange(16, dtype=np.float32).reshape(4, 4)
    weights[1, 2] += value
    values = [helper.make_tensor_value_info(name, 1, ("batch", 4)) for name in "xy"]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="product"),
        helper.make_node(kind, ["a"], ["y"], name="activation"),
    ]
    graph = helper.make_graph(
        nodes, "g", values[:1], values[1:], initializer=[numpy_helper.from_array(weights, "w")]
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)
    return path.name


@pytest.fixture
def files(tmp_path):
    """A folder with models alone."""
    project = CheapProject(tmp_path)
    save(tmp_path / "one.onnx")
    save(tmp_path / "same.onnx")
    save(tmp_path / "other.onnx", value=3, kind="Tanh")
    return project


def test_two_equal_models(files):
    seen = files("diff", "one.onnx", "same.onnx")
    assert (seen.code, seen.err) == (0, "")
    assert seen.out == "before  one.onnx\nafter   same.onnx\n\nno difference\n"


def test_two_models(files):
    seen = files("diff", "one.onnx", "other.onnx")
    assert (seen.code, seen.err) == (1, "")
    assert (
        seen.out
        == """\
before  one.onnx
after   other.onnx

graph
  Relu 'activation' is now Tanh 'activation', between MatMul 'product' and output 'y'
weights
  weight 'w' of MatMul 'product': 1 of 16 elements differs, by 3 (20 % of its largest value)
2 differences
"""
    )


def test_json_is_of_its_schema(files):
    seen = files("diff", "one.onnx", "other.onnx", "--json")
    found = json.loads(seen.out)
    validators.validate(found, output_schema("diff"))
    assert seen.code == 1
    assert not found["equal"]
    graph, weight = found["differences"]
    assert (graph["group"], weight["group"]) == ("graph", "weights")
    assert graph["data"]["places"][0]["nodes"] == ["Relu 'activation'", "Tanh 'activation'"]
    assert weight["data"]["values"] == {
        "count": 1, "size": 16, "first": [1, 2], "old": "6", "new": "9",
        "max_abs": 3.0, "max_rel": 0.2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("gone.onnx", "one.onnx"), "error: there is no gone.onnx\n  fix: name an .onnx file, "),
        (("text.onnx", "one.onnx"), "is not an ONNX model"),
        (("folder", "one.onnx"), "error: there is no bundle in folder: no manifest.json\n"),
        (("nothing", "one.onnx"), "error: 'nothing' is no file, recipe or commit here\n"),
        (
            ("one.onnx", "same.onnx", "--bench"),
            "error: --bench measures on the inputs of a recipe",
        ),
    ],
)
def test_what_can_not_be_compared_is_a_usage_error(files, arguments, what):
    (files.folder / "text.onnx").write_text("hello\n")
    (files.folder / "notes.txt").write_text("hello\n")
    (files.folder / "empty.onnx").touch()
    (files.folder / "folder").mkdir()
    seen = files("diff", *arguments)
    assert (seen.code, seen.out) == (2, "")
    assert what in seen.err


def test_pages_of_equal_comparisons_are_equal_and_escape_names(files):
    model = onnx.load(files.folder / "other.onnx")
    model.graph.node[1].name = "<script>alert(1)</script>"
    onnx.save(model, files.folder / "other.onnx")
    for name in ("a.html", "b.html"):
        assert files("diff", "one.onnx", "other.onnx", "--html", name).code == 1
    page = (files.folder / "a.html").read_text()
    assert page == (files.folder / "b.html").read_text()
    assert "<script>alert" not in page
    assert "http" not in page.replace("http-equiv", "")


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """Commits, each with its lock, each built."""
    project = Project(tmp_path_factory.mktemp("history") / "project")
    project.write("pyproject.toml", "")
    project.write(".gitignore", "artifacts/\ndist/\n__pycache__/\n")
    project.write("models/tiny.py", MODEL)
    project.write("tiny.yaml", RECIPE)
    git(project, "init", "-q")
    for name, file, old, new in STEPS:
        if file is not None:
            project.edit(file, old, new)
        locked = project("lock", "tiny.yaml")
        assert locked.code == 0, locked.err
        git(project, "add", "-A")
        git(project, "commit", "-qm", name)
        git(project, "tag", name)
    return project


def lines_of(seen, group):
    """The lines of a group."""
    assert (seen.code, seen.err) == (1, ""), seen.err
    _head, _, rest = seen.out.partition(f"\n{group}\n")
    assert rest, seen.out
    lines = []
    for line in rest.splitlines():
        if not line.startswith("  "):
            break
        lines.append(line.strip())
    return lines


@pytest.mark.slow
def test_two_commits_that_differ_by_one_weight(history):
    seen = history("diff", "base", "weight", "tiny:fp32")
    masked = re.sub(r"\b[0-9a-f]{7,12}\b", "#", WITH_LATENCY.sub("", seen.out))
    masked = re.sub(r"accuracy\n(  .*\n)*", "", masked)  # of this processor
    assert (
        masked
        == """\
before  tiny:fp32 at # (base)
after   tiny:fp32 at # (weight)

inputs
  source models/tiny.py changed (# -> #)
weights
  weight '2.weight' of Gemm 'node_linear_1': 1 of 16 elements differs, by 0.176 (50 % of its largest value)
"""
        + masked.splitlines()[-1]
        + "\n"
    )


@pytest.mark.slow
def test_two_commits_that_differ_by_one_option(history):
    seen = history("diff", "weight", "option", "tiny.yaml")
    assert lines_of(seen, "recipe") == ["variants.int8.options.per_channel: true -> false"]
    assert "inputs" not in seen.out.splitlines()
    assert all(line.startswith("int8: weight '") for line in lines_of(seen, "weights"))


@pytest.mark.slow
def test_two_commits_that_differ_by_one_opset(history):
    seen = history("diff", "option", "opset", "tiny.yaml")
    assert lines_of(seen, "recipe") == ["opset: 18 -> 19"]
    assert lines_of(seen, "graph") == ["fp32, int8: opset: 18 -> 19"]
    assert seen.out.endswith("\n2 differences\n")


@pytest.mark.slow
def test_each_is_a_sentence_of_its_own_as_text_as_json_and_on_the_page(history, tmp_path):
    sentence = "variants.int8.options.per_channel: true -> false"
    page = tmp_path / "diff.html"
    assert sentence in lines_of(history("diff", "weight", "option", "tiny.yaml"), "recipe")
    seen = history("diff", "weight", "option", "tiny.yaml", "--json", "--html", str(page))
    found = json.loads(seen.out)["differences"]
    assert sentence in [each["sentence"] for each in found if each["group"] == "recipe"]
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", "", page.read_text())).split())
    assert "variants.int8.options.per_channel: before: true → after: false" in text


@pytest.mark.slow
def test_a_commit_against_the_build_at_hand_and_without_a_lock(history, tmp_path):
    seen = history("diff", "HEAD~1", "tiny.yaml")
    assert lines_of(seen, "recipe") == ["opset: 19 -> 20"]
    assert history("diff", "HEAD", "tiny.yaml").out.splitlines()[-1] == "no difference"
    copy = Project(tmp_path / "copy")
    shutil.copytree(history.folder, copy.folder, symlinks=True)
    measured = read_lock(copy.folder / "tiny.yaml").steps["tiny:benchmark"].key
    (copy.folder / f"artifacts/ac/{measured[:2]}/{measured}.json").unlink()
    seen = copy("diff", "HEAD", "tiny.yaml")  # a lost measurement brings and takes no package
    assert (seen.code, seen.out.splitlines()[-1]) == (0, "no difference"), seen.out
    git(copy, "rm", "-q", "tiny.lock")
    git(copy, "commit", "-qm", "no lock")
    seen = copy("diff", "HEAD~1", "HEAD", "tiny")
    assert (seen.code, seen.out.splitlines()[-1]) == (0, "no difference"), seen.err
    copy.edit("tiny.yaml", "int8:", "other:")
    seen = copy("diff", "HEAD", "tiny.yaml")
    assert seen.code == 2
    assert seen.err == (
        "error: tiny:other is not built as the recipe stands\n  fix: onnxbuild run tiny.yaml\n"
    )
    shutil.rmtree(copy.folder / "artifacts")
    git(copy, "checkout", "-q", "tiny.yaml")
    seen = copy("diff", "gelu", "fused", "tiny.yaml")
    assert lines_of(seen, "graph") == [
        "fp32, int8: the bundle differs, and its files are not in the store on both sides"
    ]
    assert "note: to see what differs in the models: git worktree add ../tiny-" in seen.out
    seen = copy("diff", "gelu", "HEAD", "tiny.yaml")
    assert seen.code == 2
    assert "error: tiny:fp32, tiny:int8 are not built as the recipe stands at HEAD\n" in seen.err


@pytest.mark.slow
def test_what_git_does_not_know_is_a_usage_error(history):
    for arguments, what in (
        (
            ("HEAD~1", "HEAD"),
            "error: 'HEAD~1' is a commit; of which recipe?\n  fix: onnxbuild diff 'HEAD~1' HEAD ",
        ),
        (("HEAD~99", "HEAD", "tiny.yaml"), "error: 'HEAD~99' is no file, recipe or commit here\n"),
        (("HEAD", "tiny:fp33"), "error: tiny.yaml has no variant 'fp33'; it has fp32, int8\n"),
        (
            ("artifacts/out/tiny/fp32/model.onnx", "tiny"),
            "error: tiny has 2 models: fp32, int8; which one?\n",
        ),
    ):
        seen = history("diff", *arguments)
        assert (seen.code, seen.out) == (2, "")
        assert what in seen.err


@pytest.mark.slow
def test_folders_whose_models_are_equal_and_whose_other_files_are_not(history, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        shutil.copytree(history.folder / "artifacts/out/tiny/fp32", folder)
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755)
    assert history("diff", str(one), str(other)).code == 0
    loader = other / "load.py"
    loader.write_text(f"import evil\n{loader.read_text()}")
    (other / "cpp/main.cpp").unlink()
    (other / "benchmark.json").unlink(missing_ok=True)
    manifest = json.loads((other / "manifest.json").read_text())
    manifest["session"]["intra_op_threads"] = 8
    (other / "manifest.json").write_text(json.dumps(manifest))
    seen = history("diff", str(one), str(other))
    cpp, python, session = lines_of(seen, "files")
    assert cpp == "cpp/main.cpp: this file is gone"
    assert python.startswith("load.py: line 1: ")
    assert session == "manifest.json: session.intra_op_threads: 0 -> 8"
    found = json.loads(history("diff", str(one), str(other), "--json").out)
    validators.validate(found, output_schema("diff"))
    assert [each["data"]["file"] for each in found["differences"]] == [
        "cpp/main.cpp", "load.py", "manifest.json",
    ]  # fmt: skip
    assert history("diff", str(one), str(other), "--html", str(tmp_path / "page.html")).code == 1
    assert "Files next to the model" in (tmp_path / "page.html").read_text()


@pytest.mark.slow
def test_variants_folders_and_files_of_one_build(history):
    seen = history("diff", "tiny:fp32", "tiny:int8")
    assert lines_of(seen, "recipe")[0] == "variant.mode: none -> dynamic"
    assert any("DynamicQuantizeLinear" in line for line in lines_of(seen, "graph"))
    out = "artifacts/out/tiny"
    for one, other in (
        (f"{out}/fp32", "tiny:fp32"),
        (out, out),
        (f"{out}/int8/model.onnx", "tiny:int8"),
    ):
        seen = history("diff", one, other)
        assert (seen.code, seen.out.splitlines()[-1]) == (0, "no difference"), seen.out


@pytest.mark.slow
def test_both_are_measured_side_by_side_on_request(history):
    seen = history("diff", "gelu", "fused", "tiny:fp32", "--bench", "--json")
    assert seen.code == 1, seen.err
    (latency,) = json.loads(seen.out)["latencies"]
    assert latency["variant"] == "fp32"
    assert len(latency["speedup"]) == 3
    assert "done    tiny:benchmark" in seen.err


@pytest.fixture(scope="module")
def released(history, tmp_path_factory):
    """Two releases of two commits, and what the second said."""
    copy = Project(tmp_path_factory.mktemp("released") / "copy")
    shutil.copytree(history.folder, copy.folder, symlinks=True)
    git(copy, "checkout", "-q", "opset")
    assert copy("run", "tiny.yaml").code == 0
    first = copy("release", "tiny.yaml", "--version", "1.9.0")
    assert first.code == 0, first.err
    assert "since" not in first.out
    git(copy, "checkout", "-q", "fused")
    second = copy("release", "tiny.yaml", "--version", "1.10.0")
    assert second.code == 0, second.err
    return copy, second.out.splitlines()


@pytest.mark.slow
def test_a_report_has_the_releases_as_lines_over_time(released):
    copy, _ = released
    assert copy("report", "tiny.yaml", "-o", "page.html").code == 0
    text = re.sub(r"<[^>]+>", " ", (copy.folder / "page.html").read_text())
    assert "2 releases, the oldest at the left." in text
    assert "size, bytes, by release" in text
    assert text.index("tiny-1.9.0") < text.index("tiny-1.10.0"), "versions in their order"


@pytest.mark.slow
def test_a_release_shows_what_differs_from_the_one_before(released):
    copy, lines = released
    start = lines.index("since tiny-1.9.0:")
    assert "  recipe: opset: 19 -> 20" in lines[start:]
    assert lines[-1] == "  all of it: onnxbuild diff dist/tiny-1.9.0 dist/tiny-1.10.0"
    seen = copy("diff", "dist/tiny-1.9.0", "dist/tiny-1.10.0.tar")
    assert "opset: 19 -> 20" in lines_of(seen, "recipe")
    assert any("is now Gelu 'node_gelu'" in line for line in lines_of(seen, "graph"))
    assert copy("diff", "dist/tiny-1.10.0", "tiny.yaml").code == 0


@pytest.mark.slow
def test_a_damaged_release_is_no_side_of_a_difference(released, tmp_path):
    copy = Project(tmp_path / "copy")
    shutil.copytree(released[0].folder, copy.folder, symlinks=True)
    model = copy.folder / "dist/tiny-1.9.0/variants/fp32/model.onnx"
    model.chmod(0o644)
    model.write_bytes(model.read_bytes()[:-1] + b"!")
    seen = copy("diff", "dist/tiny-1.9.0", "dist/tiny-1.10.0")
    assert (seen.code, seen.out) == (4, "")
    assert "the release is damaged: variants/fp32/model.onnx" in seen.err
    assert "fix: onnxbuild verify dist/tiny-1.9.0" in seen.err


@pytest.mark.slow
def test_the_page_looks_right_in_a_browser(history, tmp_path):
    page = tmp_path / "diff.html"
    assert history("diff", "base", "HEAD", "tiny.yaml", "--html", str(page)).code == 1
    assert page.stat().st_size < 300_000
    assert_good(look_at([page], tmp_path))
