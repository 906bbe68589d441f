"""Builds, variants and metrics from Python: mappings, reprs, tables, completion; no step runs here."""

import ast
import copy
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from onnxbuild.building.request import Request
from onnxbuild.core.errors import BuildError, UsageError
from onnxbuild.python.build import Build
from onnxbuild.python.failure import FailedBuildError
from onnxbuild.python.metrics import Metrics
from onnxbuild.python.reports import anchored
from tests.cli.conftest import make_cheap_project

VARIANT = {
    "recipe": "bert", "variant": "int8", "family": "variant", "of": "", "made": True, "passed": True,
    "folder": "/out/bert/int8", "model": "/out/bert/int8/model.onnx", "cells": {"p50": "<b>1</b> ms"},
    "metrics": {"validate": {"max_abs": 0.5, "points": 4}, "evaluate": {"points": 9, "drop_interval": [0, 1]}},
    "verdicts": [{"step": "bert:int8/validate", "state": "passed", "passed": True, "reason": "", "findings": []}],
}  # fmt: skip
FAILED = {
    **VARIANT, "variant": "int4", "made": False, "passed": False, "folder": None, "model": None, "cells": {},
    "metrics": {},
    "verdicts": [{
        "step": "bert:int4/validate", "state": "failed", "passed": False, "reason": "",
        "findings": [{"what": "0.9 is over 0.1", "where": "", "fix": "write `atol: 1`"}],
    }],
}  # fmt: skip


def build(*variants, code=0):
    record = {
        "type": "result", "exit_code": code, "store": "/s", "out": "/s/out", "table": [], "skipped": [],
        "variants": list(variants), "failures": [],
    }  # fmt: skip
    return Build(record, "ok: 3 built, 4 cached", Request((Path("bert.yaml"),)))


def test_the_package_shows_the_api_and_nothing_else():
    import onnxbuild.building.api

    assert dir(onnxbuild) == sorted(onnxbuild.__all__)
    assert set(onnxbuild.__all__) == {*onnxbuild._HOMES, "__version__"}
    for name in onnxbuild.__all__:
        assert getattr(onnxbuild, name) is not None
    stub = Path(onnxbuild.__file__).with_suffix(".pyi").read_text()
    stubbed = {line.rpartition(" ")[2] for line in stub.splitlines() if line.startswith("from ")}
    assert stubbed | {"__version__"} == set(onnxbuild.__all__)


def test_importing_it_is_as_quick_as_importing_nothing():
    code = "import sys; before = set(sys.modules); import onnxbuild; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ast.literal_eval(done.stdout))
    assert {name for name in loaded if name.partition(".")[0] == "onnxbuild"} == {"onnxbuild"}
    assert not loaded & {"typing", "dataclasses", "pathlib", "click", "numpy"}


def test_a_build_is_a_mapping_of_variants():
    made = build(VARIANT, {**VARIANT, "variant": "fp32"})
    assert list(made) == ["int8", "fp32"]
    assert made["int8"].model == Path("/out/bert/int8/model.onnx")
    assert made["bert:int8"] is made["int8"]
    assert made.get("int9") is None
    assert 0 not in made
    with pytest.raises(KeyError, match="there is no variant 0 in this build"):
        made[0]
    assert repr(made) == "<Build int8, fp32: ok: 3 built, 4 cached>"
    assert repr(made["int8"]) == "<Variant bert:int8, passed>"
    with pytest.raises(KeyError) as raised:
        made["int9"]
    assert isinstance(raised.value, UsageError)
    assert str(raised.value) == (
        "there is no variant 'int9' in this build; did you mean 'int8'?\n  fix: one of int8, fp32"
    )


def test_a_variant_has_the_names_that_it_has_on_a_command_line(tmp_path, monkeypatch):
    project = make_cheap_project(tmp_path / "project")
    monkeypatch.chdir(project.folder)
    text = (project.folder / "tiny.yaml").read_text().replace("name: tiny", "name: bert")
    project.write("models/other.yaml", text.replace("models/", ""))
    made = build(VARIANT, {**VARIANT, "recipe": "tiny"})
    made._request = Request((Path("tiny.yaml"), Path("models/other.yaml")))
    assert made["models/other.yaml:int8"] is made["other:int8"] is made["bert:int8"]
    assert made["tiny.yaml:int8"] is made["tiny:int8"]
    made._request = anchored(made._request, project.folder / "artifacts")
    monkeypatch.chdir(project.folder / "models")
    assert made["models/other.yaml:int8"] is made["models/../models/other.yaml:int8"]
    assert made["models/other.yaml:int8"] is made["other.yaml:int8"] is made["other:int8"]
    with pytest.raises(KeyError, match="there is no variant 'gone:int8' in this build"):
        made["gone:int8"]


def test_metrics_are_found_by_step_and_name_or_by_name_alone():
    metrics = build(VARIANT)["int8"].metrics
    assert metrics["validate.max_abs"] == metrics["max_abs"] == 0.5
    assert metrics["drop_interval"] == (0, 1)
    assert list(metrics) == [
        "validate.max_abs", "validate.points", "evaluate.points", "evaluate.drop_interval",
    ]  # fmt: skip
    assert repr(metrics) == "<Metrics: 4 of 2 steps>"
    with pytest.raises(KeyError, match=r"several steps: validate\.points, evaluate\.points"):
        metrics["points"]
    with pytest.raises(
        KeyError, match=r"there is no metric 'max_ab'; the nearest are validate\.max_abs"
    ):
        metrics["max_ab"]
    assert 0 not in metrics
    assert "max_abs" in metrics
    assert "nothing" not in metrics
    assert len(Metrics({})) == 0


def test_tables_for_notebooks_are_escaped():
    text = build({**VARIANT, "variant": "<script>"})._repr_html_()
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "&lt;b&gt;1&lt;/b&gt; ms" in text
    assert text.startswith("<table><caption>ok: 3 built")
    assert build(VARIANT)["int8"].metrics._repr_html_().count("<tr>") == 5


def test_completion_shows_the_api_and_nothing_else():
    made = build(VARIANT)
    for each in (made, made["int8"], made["int8"].metrics):
        shown = dir(each)
        assert not [name for name in shown if name.startswith("_")]
        public = {
            name for kind in type(each).__mro__ for name in vars(kind) if not name.startswith("_")
        }
        assert set(shown) == public
        assert not hasattr(each, "__dict__")
    assert made._ipython_key_completions_() == ["int8"]


def test_what_was_not_made_says_why():
    variant = build(FAILED, code=3)["int4"]
    assert repr(variant) == "<Variant bert:int4, failed: int4/validate>"
    assert not variant.passed
    for use in (lambda: variant.model, lambda: variant.folder, variant.session):
        with pytest.raises(UsageError) as raised:
            use()
        assert str(raised.value) == (
            "bert:int4 was not made: 0.9 is over 0.1\n  fix: write `atol: 1`"
        )
    assert variant.findings[0]["what"] == "0.9 is over 0.1"


def test_a_failed_build_says_what_the_terminal_says_and_survives_a_process():
    error = FailedBuildError(build(FAILED, code=3), ["FAILED  bert:int4/validate: no"], 3)
    assert isinstance(error, BuildError)
    assert str(error) == "FAILED  bert:int4/validate: no\nok: 3 built, 4 cached"
    for each in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (str(each), each.exit_code, list(each.build)) == (str(error), 3, ["int4"])
