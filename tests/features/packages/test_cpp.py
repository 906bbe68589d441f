"""`packages: {cpp: {}}` in recipes, and by command."""

import json

import pytest

from onnxbuild.host.host import HostFacts
from onnxbuild.resolver import resolve
from tests.cli.conftest import project  # noqa: F401 - a fixture
from tests.native import NO_HEADERS, include_folder
from tests.written_recipes import faults, loader

RECIPE = """\
version: 1
name: demo
model: model.py:load
dummy_inputs: {ids: {dtype: int64, shape: [batch]}}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
quantization: {fp32: none, int8: dynamic}
"""


def load_of(folder):
    return loader(folder, before=RECIPE)


def test_each_variant_gets_a_project_that_is_compiled_run_and_judged(tmp_path):
    (tmp_path / "third").mkdir()
    (tmp_path / "third/onnxruntime_cxx_api.h").write_text("")
    text = "packages: {variants: [int8], cpp: {headers: third}}\n"
    graph = resolve(load_of(tmp_path)(text).recipes, HostFacts("x86_64", frozenset({"avx2"})))
    ran = graph.steps["demo:int8-cpp/run"]
    assert ran.params.headers.files == ("third/onnxruntime_cxx_api.h",)
    *_, bundle, package = graph.deliverables
    assert package.judged_by == (*bundle.judged_by, "demo:int8-cpp/run")
    assert [file for _, file in package.parts] == ["", "run.json"]


def test_headers_that_can_not_be_found_are_refused_when_the_recipe_is_read(tmp_path):
    (said, where, mend), *more = faults(load_of(tmp_path), "packages: {cpp: {header: x}}\n")
    assert [each for each, _, _ in more] == [
        "'x' in packages.cpp.headers matches no file below '.'"
    ]
    assert "did you mean 'headers'?" in said
    assert "headers" in mend
    assert where.startswith("demo.yaml:7:")


@pytest.mark.slow
def test_headers_that_come_later_run_the_test_and_nothing_else(project):  # noqa: F811
    headers = include_folder()
    if headers is None:
        pytest.skip(NO_HEADERS)
    text = "packages: {cpp: {}, ort-mobile: {style: runtime}}\nbenchmark:"
    project.edit("tiny.yaml", "benchmark:", text)
    packages = ("--only", "fp32-cpp", "--only", "fp32-ort-mobile")
    none = {"ORT_INCLUDE_DIR": str(project.folder)}
    done = project("run", "tiny.yaml", *packages, env=none)
    assert done.code == 0, done.out + done.err
    assert "was not run: ONNX Runtime's C++ headers are not here" in done.out
    out = project.folder / "artifacts/out/tiny"
    first = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
    report = out / "fp32-cpp/run.json"
    assert json.loads(report.read_text()).keys() == {"skipped"}

    done = project("run", "tiny.yaml", *packages, env={"ORT_INCLUDE_DIR": str(headers)})
    assert (done.code, done.ran) == (0, ["fp32-cpp/run"]), done.out + done.err
    assert json.loads(report.read_text())["passed"] is True
    changed = {p for p, content in first.items() if p.read_bytes() != content}
    assert changed == {report}
    done = project("run", "tiny.yaml", *packages, env={"ORT_INCLUDE_DIR": str(headers)})
    assert "up to date" in done.out

    mobile = out / "fp32-ort-mobile"
    assert json.loads((mobile / "run.json").read_text())["passed"] is True
    assert json.loads((mobile / "validation.json").read_text())["passed"] is True
    kotlin = (mobile / "android/TinyFp32.kt").read_text()
    assert 'addConfigEntry("session.enable_saved_runtime_optimizations", "1")' in kotlin
    assert [row["provider"] for row in json.loads((mobile / "coverage.json").read_text())] == [
        "NNAPI", "CoreML (ML Program)", "CoreML (Neural Network)", "XNNPACK",
    ]  # fmt: skip
