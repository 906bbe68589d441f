"""The GitHub Action: valid metadata, and its shell steps run as a runner runs them, in order, with inputs as variables.

The steps of other actions (setup-python, cache, upload-artifact) need GitHub; of them only the inputs are checked.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from onnxbuild import __version__
from tests.ci.reading import read_junit, rendered_tables
from tools.make_dist import export

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = ACTION["runs"]["steps"]
BIN = Path(sys.executable).parent
RECIPE = """\
version: 1
name: tiny
model: {entrypoint: tiny.py:load}
dummy_inputs:
  input: {dtype: float32, shape: [batch, 4]}
outputs: [logits]
dynamic_axes:
  batch: {min: 1, max: 8, example: 2}
export: {exporter: torchscript}
quantization:
  fp32: none
  int8: dynamic
validate:
  int8: {atol: 1.0e-9, rtol: 0}
"""
MODEL = """\
import torch


def load():
    torch.manual_seed(0)
    return torch.nn.Linear(4, 2)
"""
_EXPRESSION = re.compile(r"\$\{\{\s*(\w+)((?:\.[\w-]+)+)\s*\}\}")


@pytest.mark.slow
def test_the_metadata_is_valid_by_its_published_schema():
    done = subprocess.run(
        [
            BIN / "check-jsonschema",
            "--builtin-schema",
            "vendor.github-actions",
            ROOT / "action.yml",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_a_wrong_key_is_not_valid(tmp_path):
    wrong = tmp_path / "action.yml"
    wrong.write_text((ROOT / "action.yml").read_text().replace("shell: bash", "shel: bash"))
    done = subprocess.run(
        [BIN / "check-jsonschema", "--builtin-schema", "vendor.github-actions", wrong],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1


def test_no_program_holds_an_expression():
    assert [step["name"] for step in STEPS if "${{" in step.get("run", "")] == []


def test_expressions_name_inputs_and_outputs_that_there_are():
    text = (ROOT / "action.yml").read_text()
    inputs = set(re.findall(r"inputs\.([\w-]+)", text))
    assert inputs == set(ACTION["inputs"])
    programs = {step["id"]: step.get("run", "") for step in STEPS if "id" in step}
    for step, output in re.findall(r"steps\.([\w-]+)\.outputs\.([\w-]+)", text):
        if step == "key":  # what `onnxbuild cache key --github` sets
            assert output in {"key", "restore-keys"}
        else:
            assert f'echo "{output}=' in programs[step]


def test_each_action_of_others_is_named_with_its_version():
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert len(used) == 4
    assert all(re.fullmatch(r"actions/[\w/-]+@v\d+", each) for each in used)


def read_outputs(text):
    """Outputs of a step, as a runner reads them: NAME=VALUE, or NAME<<MARK, lines and MARK."""
    lines, found = iter(text.splitlines()), {}
    for line in lines:
        name, mark = line.split("<<", 1) if "<<" in line.partition("=")[0] else (line, "")
        if mark:
            found[name] = "\n".join(iter(lambda mark=mark: next(lines), mark))
        else:
            name, _, value = line.partition("=")
            found[name] = value
    return found


class Runner:
    """Runs the shell steps of the action, each a bash of its own as GitHub starts it."""

    def __init__(self, checkout, temp, **inputs):
        self.checkout, self.temp = checkout, temp
        self.inputs = {name: each.get("default", "") for name, each in ACTION["inputs"].items()}
        assert set(inputs) <= set(self.inputs)
        self.inputs |= {"install": "none", **inputs}
        self.outputs = {}
        self.summary = temp / "summary.md"
        temp.mkdir(parents=True, exist_ok=True)

    def filled(self, text):
        def value(found):
            names = found[2].split(".")[1:]
            if found[1] == "inputs":
                return self.inputs[names[0]]
            if found[1] == "steps":
                return self.outputs.get(names[0], {}).get(names[2], "")
            return {"action_path": str(ROOT)}[names[0]]

        return _EXPRESSION.sub(value, text)

    def run(self, step, **more):
        output, script = self.temp / "output", self.temp / "script.sh"
        output.write_text("")
        script.write_text(step["run"])
        environment = {
            name: each for name, each in os.environ.items() if not name.startswith("ONNXBUILD")
        }
        environment |= {name: self.filled(each) for name, each in step.get("env", {}).items()}
        environment |= {
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_WORKSPACE": str(self.checkout),
            "RUNNER_TEMP": str(self.temp),
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            **more,
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
            cwd=self.checkout / self.filled(step["working-directory"]),
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        said = read_outputs(output.read_text())
        self.outputs[step.get("id", step["name"])] = said
        return done

    def run_all(self):
        """The steps up to the first that fails: (exit code, all that they print)."""
        text = ""
        for step in STEPS:
            if "run" in step:
                done = self.run(step)
                text += done.stdout
                if done.returncode:
                    return done.returncode, text
        return 0, text


@pytest.fixture
def checkout(tmp_path):
    """A repository whose project is in a folder of it."""
    root = tmp_path / "a checkout"
    (root / "models/recipes").mkdir(parents=True)
    (root / "models/pyproject.toml").write_text("")
    (root / "models/recipes/tiny.yaml").write_text(RECIPE)
    (root / "models/recipes/tiny.py").write_text(MODEL)
    return root


def find(checkout, temp, **inputs):
    runner = Runner(checkout, temp, **{"working-directory": "models", **inputs})
    return runner, runner.run(STEPS[0])


def test_where_the_store_is(checkout, tmp_path):
    runner, _ = find(checkout, tmp_path / "temp")
    assert runner.outputs["recipes"]["out"] == "models/artifacts/out"
    runner, _ = find(checkout, tmp_path / "temp", cache="/somewhere/else")
    assert runner.outputs["recipes"]["store"] == "/somewhere/else"


def test_no_recipe_is_one_sentence(checkout, tmp_path):
    _, done = find(checkout, tmp_path / "temp", recipes="nowhere/*.yaml $(touch owned)")
    assert done.returncode == 2
    assert done.stdout.startswith("::error title=onnxbuild::no recipe is found by 'nowhere/*.yaml")
    assert not (checkout / "models/owned").exists()


@pytest.mark.slow
def test_a_build_that_fails_its_gate_is_annotated_at_the_variant_and_kept(checkout, tmp_path):
    runner = Runner(
        checkout, tmp_path / "temp", only="fp32 int8/validate", **{"working-directory": "models"}
    )
    code, said = runner.run_all()
    assert code == 3, said
    assert runner.outputs["run"]["exit-code"] == "3"
    (annotated,) = [line for line in said.splitlines() if line.startswith("::error")]
    assert annotated.startswith(
        "::error file=models/recipes/tiny.yaml,line=12,col=3,title=tiny%3Aint8/validate::"
    )
    assert "%0Afix: " in annotated
    assert (checkout / "models/artifacts/out/tiny/fp32/model.onnx").is_file()
    assert "failed (exit code 3)" in runner.summary.read_text()
    key = runner.outputs["key"]
    assert key["key"].startswith("onnxbuild-")
    assert key["restore-keys"].splitlines()[0] == f"{key['key']}-"
    runner = Runner(checkout, tmp_path / "again", only="fp32", **{"working-directory": "models"})
    code, said = runner.run_all()
    assert code == 0, said
    assert "0 cached" not in said
    assert "::error" not in said


@pytest.mark.slow
def test_faults_of_recipes_are_annotated_where_they_are(checkout, tmp_path):
    (checkout / "models/recipes/tiny.yaml").write_text(
        RECIPE.replace("int8: dynamic", "int8: dynmic")
    )
    runner = Runner(checkout, tmp_path / "temp", **{"working-directory": "models"})
    code, said = runner.run_all()
    assert code == 2
    assert (
        "::error file=models/recipes/tiny.yaml,line=12,col=9,title=onnxbuild::quantization.int8 is"
        in said
    )
    assert "run" not in runner.outputs


@pytest.mark.slow
def test_the_action_installs_its_own_revision(checkout, tmp_path):
    """Without its packages, which are here; with this environment's setuptools."""
    (step,) = [each for each in STEPS if each["name"] == "Install onnxbuild"]
    own, target = tmp_path / "own", tmp_path / "installed"
    try:
        export("HEAD", own)
    except SystemExit:
        pytest.skip("not a git checkout")
    runner = Runner(checkout, tmp_path / "temp", install="", **{"working-directory": "models"})
    done = runner.run(
        step,
        ACTION=str(own),
        PIP_TARGET=str(target),
        PIP_NO_DEPS="1",
        PIP_NO_BUILD_ISOLATION="0",  # pip's way to say that there is none
        PYTHONPATH=str(target),
        PATH=f"{target / 'bin'}{os.pathsep}{BIN}{os.pathsep}{os.environ['PATH']}",
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == f"onnxbuild {__version__}"
    assert (target / "onnxbuild/catalog.py").is_file()


@pytest.mark.slow
def test_a_ci_run_in_a_clean_clone_reports_each_kind_of_failure_where_it_is(tmp_path):
    """A gate that fails, Python that raises and a faulty recipe: annotations, JUnit XML, the job's summary."""
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    (origin / "recipes").mkdir(parents=True)
    files = {
        "pyproject.toml": "",
        ".gitignore": "artifacts/\n",
        "recipes/tiny.yaml": RECIPE,
        "recipes/tiny.py": MODEL,
        "recipes/raising.yaml": RECIPE.replace("tiny", "raising"),
        "recipes/raising.py": f"{MODEL}    raise ValueError('100 %: no')\n".replace(
            "    return", "    _ ="
        ),
    }
    for name, text in files.items():
        (origin / name).write_text(text)
    git = [
        "git",
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.org",
        "-c",
        "init.defaultBranch=main",
    ]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "models"]):
        subprocess.run([*git, *arguments], cwd=origin, check=True)
    subprocess.run([*git, "clone", "-q", origin, clone], check=True)

    runner = Runner(clone, tmp_path / "temp", junit="reports/onnxbuild.xml")
    code, said = runner.run_all()
    assert code == 1, said  # a step that breaks outranks a gate
    annotated = sorted(line for line in said.splitlines() if line.startswith("::"))
    assert len(annotated) == 2
    assert re.match(
        r"::error file=recipes/raising\.py,line=7,title=raising%3A\w+::.*100 %25: no", annotated[0]
    )
    assert annotated[1].startswith(
        "::error file=recipes/tiny.yaml,line=12,col=3,title=tiny%3Aint8/validate::"
    )
    suites = read_junit(clone / "reports/onnxbuild.xml")
    assert set(suites) == {"raising", "tiny"}
    assert suites["tiny"]["tiny.int8 validate"].find("failure").get("type") == "gate"
    assert suites["raising"]["raising export"].find("error") is not None
    assert float(suites["tiny"]["tiny export"].get("time")) > 0
    summary = runner.summary.read_text()
    (table,) = rendered_tables(summary)
    gates = {tuple(row[:2]): row[-1] for row in table[1:]}
    assert gates["tiny", "fp32"].endswith("passed")
    assert gates["tiny", "int8"].endswith("tiny:int8/validate")
    assert gates["raising", "fp32"] == "not made"
    assert "recipes/raising.py:7" in summary
    first = runner.outputs["key"]

    (clone / "recipes/tiny.yaml").write_text(RECIPE.replace("int8: dynamic", "int8: dynmic"))
    again = Runner(clone, tmp_path / "again", junit="reports/onnxbuild.xml")
    code, said = again.run_all()
    assert code == 2
    assert (
        "::error file=recipes/tiny.yaml,line=12,col=9,title=onnxbuild::quantization.int8" in said
    )
    (clone / "recipes/tiny.yaml").write_text(RECIPE + "# a word\n")
    last = Runner(clone, tmp_path / "last", only="fp32", recipes="recipes/tiny.yaml")
    assert last.run_all()[0] == 0
    assert last.outputs["key"]["key"] != first["key"]
