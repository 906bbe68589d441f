"""What `run` leaves for CI: JUnit XML by a schema, annotations at the right lines, a summary that renders, a cache's key."""

# ruff: noqa: F811 - fixtures are imported
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from onnxbuild.ci.github import Annotation, workflow_command
from onnxbuild.ci.job_summary import summary_of_run
from onnxbuild.ci.junit import junit_of_error
from onnxbuild.core.errors import RecipeError, RecipeErrors
from tests.ci.reading import read_junit, rendered_tables
from tests.cli.conftest import cheap, make_cheap_project, project  # noqa: F401 - fixtures
from tests.fakes.cheap_kinds import UNREACHABLE_SQNR_DB

GATE = f"validate:\n  fp32: {{sqnr_db_min: {UNREACHABLE_SQNR_DB + 1}}}\n"


ENDING = """\
import sys

from onnxbuild.cli.kinds import Kinds
from onnxbuild.cli.main import run_command
from tests.fakes.cheap_kinds import CHEAP, KINDS


class Ending:
    def __init__(self, workspace):
        self.real = KINDS.make_executor(workspace)

    def __getattr__(self, name):
        return getattr(self.real, name)

    def wait(self, timeout_s):
        raise {ending}


arguments = ["run", "tiny.yaml", "--junit", "run.xml", "--summary", "run.md", "--github"]
sys.exit(run_command(arguments, Kinds(CHEAP, Ending)))
"""


@pytest.fixture
def github(cheap, tmp_path):
    """Variables of a job whose checkout is the folder above the project's."""
    return {
        "GITHUB_WORKSPACE": str(tmp_path),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }


def commands(text):
    return [line for line in text.splitlines() if line.startswith("::")]


def test_a_good_run_has_a_case_for_each_step_and_no_annotation(cheap, github, tmp_path):
    done = cheap("run", "tiny.yaml", "--junit", "build/run.xml", "--github", env=github)
    assert done.code == 0
    suites = read_junit(cheap.folder / "build/run.xml")
    assert list(suites) == ["tiny"]
    assert {"tiny export", "tiny.fp32 validate", "tiny benchmark"} <= set(suites["tiny"])
    assert not any(len(case) for case in suites["tiny"].values())
    assert commands(done.out) == []
    (table,) = rendered_tables((tmp_path / "summary.md").read_text())
    assert table[0][:2] == ["recipe", "variant"]
    assert table[1][:2] == ["tiny", "fp32"]
    assert table[1][-1].endswith("passed")
    assert (tmp_path / "output").read_text().splitlines() == [
        "exit-code=0",
        f"out={cheap.folder}/artifacts/out",
    ]

    again = cheap("run", "tiny.yaml", "--junit", "again.xml", "--github", env=github)
    assert "up to date" in again.out
    assert set(read_junit(cheap.folder / "again.xml")["tiny"]) == set(suites["tiny"])


def test_a_gate_that_fails_is_a_failure_at_the_line_of_its_variant(cheap, github, tmp_path):
    cheap.write("tiny.yaml", (cheap.folder / "tiny.yaml").read_text() + GATE)
    done = cheap("run", "tiny.yaml", "--junit", "run.xml", "--github", env=github)
    assert done.code == 3
    cases = read_junit(cheap.folder / "run.xml")["tiny"]
    failure = cases["tiny.fp32 validate"].find("failure")
    assert failure.get("type") == "gate"
    assert "dB" in failure.get("message")
    assert re.search(r"^log: .*/logs/", failure.text, re.MULTILINE)
    assert cases["tiny.fp32 package"].find("skipped") is not None
    (line,) = commands(done.out)
    number = (cheap.folder / "tiny.yaml").read_text().splitlines().index(
        "quantization: {fp32: none}"
    ) + 1
    assert line.startswith(f"::error file=project/tiny.yaml,line={number},col=")
    assert ",title=tiny%3Afp32/validate::" in line
    assert line.endswith("%0A1 step depends on it")
    text = (tmp_path / "summary.md").read_text()
    assert "failed (exit code 3)" in text
    assert rendered_tables(text)[0][1][-1].endswith("tiny:fp32/validate")
    assert "exit-code=3" in (tmp_path / "output").read_text()


@pytest.mark.slow
def test_python_that_raises_is_an_error_at_its_own_line(project, tmp_path):
    project.write(
        "models/tiny.py", "def load(width=8):\n    x = 1\n    raise ValueError('no: 5 %')\n"
    )
    env = {"GITHUB_WORKSPACE": str(tmp_path)}
    options = ("--junit", "run.xml", "--github", "--keep-going", "--jobs", "1")
    done = project("run", "tiny.yaml", *options, env=env)
    assert done.code == 1
    cases = read_junit(project.folder / "run.xml")["tiny"]
    assert float(cases["tiny export"].get("time")) > 0
    error = cases["tiny export"].find("error")
    assert "no: 5 %" in error.get("message")
    assert "models/tiny.py:3" in error.text
    lines = commands(done.out)
    assert len(lines) == 1  # the steps that load it fail alike
    assert lines[0].startswith("::error file=project/models/tiny.py,line=3,title=tiny%3Aexport::")
    assert "no: 5 %25" in lines[0]


def test_faults_of_a_recipe_are_annotated_and_replace_an_old_report(cheap, github, tmp_path):
    cheap("run", "tiny.yaml", "--junit", "run.xml")
    cheap.edit("tiny.yaml", "outputs:", "output:")
    done = cheap("run", "tiny.yaml", "--junit", "run.xml", "--github", env=github)
    assert done.code == 2
    cases = read_junit(cheap.folder / "run.xml")["tiny.yaml"]
    assert [name for name in cases if name.startswith("recipe tiny.yaml:6:1")]
    assert any(
        line.startswith("::error file=project/tiny.yaml,line=6,col=1,")
        for line in commands(done.out)
    )
    text = (tmp_path / "summary.md").read_text()
    assert "nothing was run (exit code 2)" in text
    assert rendered_tables(text) == []
    linted = cheap("lint", "tiny.yaml", "--github", env=github)
    assert commands(linted.out) == commands(done.out)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("x.onnx",), "x.onnx is a model or other data, not a recipe"),
        ((), "holds none in recipes/"),
        (("tiny.yaml", "--pace"), "No such option"),
    ],
)
def test_what_the_command_line_gets_wrong_reaches_ci_and_replaces_old_files(
    cheap, github, tmp_path, arguments, said
):
    options = ("--junit", "run.xml", "--summary=run.md", "--github")
    for name in ("run.xml", "run.md"):
        cheap.write(name, "of an earlier run")
    cheap.write("x.onnx", "\x00\x01")
    (cheap.folder / "empty").mkdir()
    if not arguments:
        (cheap.folder / "tiny.yaml").unlink()
    done = cheap("run", *arguments, *options, env=github)
    assert done.code == 2
    ((case,),) = [suite.values() for suite in read_junit(cheap.folder / "run.xml").values()]
    assert said in case.find("error").get("message")
    (line,) = commands(done.out)
    assert line.startswith("::error title=onnxbuild::")
    assert said in line
    summary = (tmp_path / "summary.md").read_text()
    assert "nothing was run (exit code 2)" in summary
    assert (cheap.folder / "run.md").read_text() == summary
    assert (tmp_path / "output").read_text() == "exit-code=2\n"


def test_other_verbs_annotate_an_argument_that_is_no_recipe(cheap, github):
    cheap.write("x.onnx", "\x00\x01")
    done = cheap("lint", "x.onnx", "--github", env=github)
    assert done.code == 2
    (line,) = commands(done.out + done.err)
    assert line.startswith("::error title=onnxbuild::x.onnx is a model")


@pytest.mark.parametrize(
    ("ending", "code", "kind", "said"),
    [
        ("KeyboardInterrupt", 130, "InterruptedRunError", "interrupted; finished steps are kept"),
        ("ZeroDivisionError('by 0')", 70, "BugError", "a bug in itself: ZeroDivisionError: by 0"),
    ],
)
def test_an_interruption_and_a_bug_leave_a_report_too(tmp_path, ending, code, kind, said):
    """In a process of its own, with step kinds that end it in the middle of a run."""
    made = make_cheap_project(tmp_path / "project")
    made.write("run.xml", "of an earlier run")
    made.write("ending.py", ENDING.format(ending=ending))
    done = subprocess.run(
        [sys.executable, "ending.py"],
        cwd=made.folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    ((case,),) = [suite.values() for suite in read_junit(made.folder / "run.xml").values()]
    assert case.find("error").get("type") == kind
    assert said in case.find("error").get("message")
    (line,) = commands(done.stdout)
    assert said in line
    assert f"the run has no result (exit code {code})" in (made.folder / "run.md").read_text()


def test_a_report_that_can_not_be_written_is_an_error_and_said_once(cheap, github):
    cheap.write("file", "")
    done = cheap("run", "tiny.yaml", "--junit", "file/run.xml", "--github", env=github)
    assert done.code == 1
    assert (done.out + done.err).count("file/run.xml") == 2  # the annotation, and the error


def test_a_remark_is_a_notice_at_its_line(cheap, github):
    text = (cheap.folder / "tiny.yaml").read_text()
    cheap.write("tiny.yaml", f"{text}providers: [cpu, cuda]\n")
    cheap.edit("tiny.yaml", "{fp32: none}", "{fp32: none, int8: dynamic}")
    linted = cheap("lint", "tiny.yaml", "--github", env=github)
    number = text.splitlines().index("quantization: {fp32: none}") + 1
    place = f"tiny.yaml:{number}:28: "
    (note,) = [line for line in linted.err.splitlines() if "on target 'cuda'" in line]
    assert note.startswith(f"note: {place}tiny: variant 'int8' ")
    (line,) = [line for line in commands(linted.out) if "on target 'cuda'" in line]
    (place,) = re.findall(
        r"::notice file=project/tiny.yaml,line=(\d+),col=28,title=onnxbuild::", line
    )
    assert int(place) == number


def test_commands_are_escaped(tmp_path):
    annotation = Annotation("50 %\r\nnext: a,b", "a:b,c", "error", "x,y/a.yaml", 3, 5)
    assert workflow_command(annotation, tmp_path / "sub", tmp_path) == (
        "::error file=sub/x%2Cy/a.yaml,line=3,col=5,title=a%3Ab%2Cc::50 %25%0D%0Anext: a,b"
    )


def test_a_report_holds_any_text(tmp_path):
    error = RecipeErrors([RecipeError("bad \x1b[31m <&> \ud800 'é'", where="a<b>.yaml:1:2")])
    path = tmp_path / "run.xml"
    path.write_bytes(junit_of_error(["a.yaml"], error, "2026-01-02T03:04:05"))
    ((case,),) = [suite.values() for suite in read_junit(path).values()]
    assert case.find("error").get("message") == "bad \ufffd[31m <&> \ufffd 'é'"


def test_the_summary_shows_any_text_as_it_is():
    odd = "a|b *c* `d` <img src=x> [e](http://f) _g_ ![h](i) # j & \\"
    variant = {
        "recipe": "r_1", "variant": odd, "family": "variant", "of": "", "made": True, "passed": True,
        "folder": None, "model": None, "cells": {"p50": "1 ms", odd: odd}, "metrics": {}, "verdicts": [],
    }  # fmt: skip
    failure = {
        "step": "r:a|`b`", "code": 1, "what": odd, "where": "", "file": "a.yaml", "line": 3, "column": 1,
        "fix": odd, "log": None, "blocked": 2,
    }  # fmt: skip
    result = {
        "type": "result", "exit_code": 1, "store": "", "out": "", "table": [], "skipped": [odd],
        "variants": [variant], "failures": [failure],
    }  # fmt: skip
    text = summary_of_run(result, "FAILED")
    (table,) = rendered_tables(text)
    assert table == [
        ["recipe", "variant", "p50", odd, "gates"],
        ["r_1", odd, "1 ms", odd, "\N{WHITE HEAVY CHECK MARK} passed"],
    ]


def test_the_summary_has_no_check_mark_where_no_gate_ran():
    verdict = {
        "step": "r:web/test", "state": "skipped", "passed": False, "reason": "no node | here", "findings": [],
    }  # fmt: skip
    variant = {
        "recipe": "r", "variant": "web", "family": "package", "of": "fp32", "made": True, "passed": False,
        "folder": None, "model": None, "cells": {}, "metrics": {}, "verdicts": [verdict],
    }  # fmt: skip
    result = {
        "type": "result", "exit_code": 0, "store": "", "out": "", "table": [], "skipped": [],
        "variants": [variant], "failures": [],
    }  # fmt: skip
    ((_, row),) = rendered_tables(summary_of_run(result, "ok"))
    assert row[-1].endswith("skipped r:web/test (no node | here)")
    assert "\N{WHITE HEAVY CHECK MARK}" not in row[-1]


def test_a_caches_key_follows_what_decides_a_build(cheap, github, tmp_path):
    def key(*arguments):
        done = cheap("cache", "key", "tiny.yaml", *arguments, env=github)
        assert done.code == 0, done.err
        return done.out.strip()

    first = key()
    assert key() == first
    assert re.fullmatch(r"onnxbuild-\w+-\w+-py3\.\d+-[0-9a-f]{32}", first)
    keys = {first, key("--set", "opset=17")}
    assert len(keys) == 2
    for name, text in (
        ("tiny.yaml", (cheap.folder / "tiny.yaml").read_text() + "# more\n"),
        ("tiny.lock", "a lock"),
        ("models/helper.py", "def activation():\n    return 'GELU'\n"),
    ):
        cheap.write(name, text)
        keys.add(key())
    assert len(keys) == 5
    found = json.loads(key("--github", "--json"))
    assert found["files"] == ["models/helper.py", "models/tiny.py", "tiny.lock", "tiny.yaml"]
    lines = (tmp_path / "output").read_text().splitlines()
    mark = lines[1].partition("<<")[2]
    assert re.fullmatch(r"onnxbuild-[0-9a-f]{32}", mark)
    assert lines == [
        f"key={found['key']}",
        f"restore-keys<<{mark}",
        *found["restore_keys"],
        mark,
        f"path={cheap.folder}/artifacts",
    ]
    assert not (cheap.folder / "artifacts").exists()
