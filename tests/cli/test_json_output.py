"""`--json` of every verb: standard output holds JSON alone, valid by the verb's schema; errors, too."""

import json
import re
import shlex
from pathlib import Path

import pytest

from onnxbuild.output.verbs import OUTPUTS, output_schema
from onnxbuild.recipe.schema.lean_jsonschema import Draft202012Validator
from tests.attack.test_remote_store import key
from tests.cli.conftest import Project, Result, make_project

pytestmark = pytest.mark.slow

COMMANDS = {
    "init": "init models/tiny.py:load --name first",
    "run": "run tiny.yaml --set opset=17",
    "plan": "plan tiny.yaml --set opset=16",
    "why": "why tiny:fp32/package --set opset=16",
    "diagnose": "diagnose tiny:fp32",
    "bench": "bench tiny.yaml",
    "lock": "lock tiny.yaml",
    "reproduce": "reproduce tiny.yaml --only export",
    "release": "release tiny.yaml --version 2 --allow-dirty --push oci:released2:2",
    "verify": "verify dist/tiny-1 --run",
    "push": "push tiny:fp32 oci:pushed:1",
    "pull": "pull oci:released:1",
    "graph": "graph tiny.yaml",
    "inspect": "inspect tiny:fp32",
    "view": "view tiny:fp32",
    "diff": "diff tiny:fp32 tiny:fp32",
    "report": "report tiny.yaml",
    "log": "log tiny:export",
    "lint": "lint tiny.yaml",
    "explain": "explain tiny.yaml",
    "schema": "schema --write recipe.schema.json",
    "doctor": "doctor",
    "clean": "clean",
    "cache stats": "cache stats",
    "cache pins": "cache pins",
    "cache unpin": "cache unpin PIN",
    "cache verify": "cache verify",
    "cache gc": "cache gc",
    "cache key": "cache key tiny.yaml",
    "cache push": "cache push tiny.yaml",
    "cache pull": "cache pull tiny.yaml",
    "completion": "completion bash",
}
"""What makes each verb print its result."""

FAULTY = {
    "init": "init none.bin",
    "why": "why tiny:none",
    "diagnose": "diagnose none:fp32",
    "release": "release none.yaml --version 2",
    "verify": "verify none",
    "push": "push none:fp32 oci:pushed:1",
    "pull": "pull oci:none:1",
    "inspect": "inspect none.onnx",
    "view": "view none.onnx",
    "diff": "diff none.onnx none.onnx",
    "log": "log none:export",
    "schema": "schema --command none",
    "doctor": "doctor --frob",
    "clean": "clean --frob",
    "cache stats": "cache stats --store none",
    "cache pins": "cache pins --store none",
    "cache unpin": "cache unpin none",
    "cache verify": "cache verify --store none",
    "cache gc": "cache gc --store none",
    "completion": "completion tcsh",
}
"""What makes each verb end with an error; `VERB none.yaml` for those that are not here."""

REMOTE = """
[tool.onnxbuild.remote]
url = "file://{folder}/remote"
sign_key = "{folder}/1.pem"
trusted_keys = ["{folder}/1.pub"]
push = "always"
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Project:
    folder = tmp_path_factory.mktemp("json")
    project = make_project(folder / "project")
    project.write("pyproject.toml", REMOTE.format(folder=key(folder, 1).parent))
    for arguments in (
        "lock tiny.yaml",
        "release tiny.yaml --version 1 --allow-dirty",
        "push dist/tiny-1 oci:released:1",
    ):
        made = project(*arguments.split())
        assert made.code == 0, made.err
    return project


def pinned(built: Project) -> str:
    """Name of a pin."""
    return json.loads(built("cache", "pins", "--json").out)["pins"][0]["name"]


def records(verb: str, done: Result) -> list[dict]:
    """All that was printed, valid by the verb's schema."""
    try:
        found = [json.loads(done.out)]
    except json.JSONDecodeError:
        assert OUTPUTS[verb].lines
        found = [json.loads(line) for line in done.out.splitlines()]
    validator = Draft202012Validator(output_schema(verb))
    for each in found:
        validator.validate(each)
    return found


@pytest.mark.parametrize("verb", [verb for verb in OUTPUTS if verb != "watch"])
def test_every_verb_prints_its_result_as_json_alone(built, verb):
    command = COMMANDS[verb]
    if "PIN" in command:
        command = command.replace("PIN", pinned(built))
    done = built(*shlex.split(command), "--json")
    assert done.code == (1 if verb == "doctor" and done.code else 0), done.err
    assert records(verb, done)[-1].get("type") != "error"


@pytest.mark.parametrize("verb", OUTPUTS)
def test_every_verb_prints_its_errors_as_json_alone(built, verb):
    done = built(*shlex.split(FAULTY.get(verb, f"{verb} none.yaml")), "--json")
    assert done.code != 0
    error = records(verb, done)[-1]
    assert (error["type"], error["code"]) == ("error", done.code)
    assert error["errors"][0]["what"]
    assert error["errors"][0]["what"].splitlines()[0] in done.err


def test_a_run_ends_with_table_paths_and_scores(built):
    *events, result = records("run", built("run", "tiny.yaml", "--json", "--set", "opset=17"))
    assert [each["type"] for each in events][-1] == "run_finished"
    (variant,) = result["variants"]
    assert result["table"][0]["variant"] == variant["variant"] == "fp32"
    assert variant["model"] == str(built.folder / "artifacts/out/tiny/fp32/model.onnx")
    assert variant["metrics"]["validate"]["max_abs"] < 1e-3
    assert "p50_ms" in variant["metrics"]["benchmark"]
    assert [each["state"] for each in variant["verdicts"]] == ["passed"] * 3
    again = records("run", built("run", "tiny.yaml", "--json", "--set", "opset=17"))[-1]
    assert again == result  # recalled at a glance: the same words
    quiet = records("run", built("run", "tiny.yaml", "--json", "--quiet", "--set", "opset=17"))
    assert quiet == [result]
    whole = built("run", "tiny.yaml", "--json", "--set", "opset=17", "--jobs", "1")
    assert records("run", whole)[-1] == result


def test_a_failed_run_has_its_failures_with_file_and_line(tmp_path):
    project = make_project(tmp_path / "project")
    project.write("models/helper.py", "def activation():\n    raise OSError('gone')\n")
    done = project("run", "tiny.yaml", "--json", "--jobs", "1")
    assert done.code == 1
    found = records("run", done)
    failure = found[-1]["failures"][0]
    assert (failure["step"], failure["code"]) == ("tiny:export", 1)
    assert (failure["file"], failure["line"]) == ("models/helper.py", 2)
    assert failure["blocked"] > 3
    assert Path(failure["log"]).is_file()
    assert found[-1]["variants"][0]["made"] is False
    locked = records("lock", project("lock", "tiny.yaml", "--json", "--jobs", "1"))
    assert locked[-1]["failures"][0]["what"] == failure["what"]


def test_faults_of_a_recipe_have_file_line_column_and_fix(tmp_path):
    project = make_project(tmp_path / "project")
    project.edit("tiny.yaml", "outputs:", "output:")
    project.edit("tiny.yaml", "dtype: float32", "dtype: float23")
    (error,) = records("run", project("run", "tiny.yaml", "--json"))
    assert len(error["errors"]) >= 2
    assert {each["file"] for each in error["errors"]} == {"tiny.yaml"}
    assert all(each["line"] and each["column"] for each in error["errors"])
    assert any(each["fix"] for each in error["errors"])


def test_quiet_says_errors_and_the_result_alone(tmp_path):
    project = make_project(tmp_path / "project")
    first = project("run", "tiny.yaml", "-q", "--set", "benchmark.max_time_s=0.1")
    lines = first.out.splitlines()
    assert lines[0].startswith("recipe  variant")
    assert lines[1].startswith("tiny    fp32")
    assert lines[-1].startswith("ok: ")
    assert first.err == ""
    project.edit("models/helper.py", "return", "raise OSError('gone')\n    return")
    failed = project("run", "tiny.yaml", "--quiet", "--jobs", "1")
    assert failed.code == 1
    what = r"FAILED  tiny:(export|reference): models/tiny\.py:load raised OSError: gone\n"
    assert re.match(what, failed.out)
    assert "run     " not in failed.out
    assert "blocked" not in failed.out
