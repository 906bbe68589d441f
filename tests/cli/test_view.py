"""`view`: a model's graph as a page or a picture, and what is said where that can't be."""

import os
import resource
import signal
import subprocess
import sys
import time
import urllib.request

import onnx
import pytest

from onnxbuild.onnxkit.model.model_files import save_model
from tests.cli.conftest import CheapProject, Project, heed_signals, make_project
from tests.onnxkit.pictures.models import branching, transformer


@pytest.fixture
def project(tmp_path) -> CheapProject:
    folder = tmp_path / "project"
    folder.mkdir()
    onnx.save(transformer(3), folder / "model.onnx")
    return CheapProject(folder)


def test_a_file_is_drawn_as_a_page_named_after_it(project):
    seen = project("view", "model.onnx")
    assert (seen.code, seen.err) == (0, "")
    page = project.folder / "model.view.html"
    kilobytes = round(page.stat().st_size / 1000)
    assert seen.out == f"model.view.html: 58 nodes of model.onnx, {kilobytes} KB\n"
    assert page.read_text().startswith("<!doctype html>")
    before = page.read_bytes()
    assert project("view", "model.onnx").code == 0
    assert page.read_bytes() == before


def test_a_page_that_can_not_be_written_leaves_the_earlier_one(project):
    onnx.save(branching(), project.folder / "other.onnx")
    page = project.folder / "page.html"
    page.write_text("earlier")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))  # fails as a full disk does
    try:
        seen = project("view", "model.onnx", "-o", "page.html")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert seen.code in {1, 2}
    assert seen.err.startswith("error: can't write ")
    assert page.read_text() == "earlier"
    assert sorted(each.name for each in project.folder.iterdir()) == [
        "model.onnx", "other.onnx", "page.html",
    ]  # fmt: skip


def test_weights_in_other_files_need_not_be_there(project):
    folder = project.folder / "outside"
    save_model(transformer(3), folder, external="always")
    assert project("view", "outside/model.onnx", "-o", "with.html").code == 0
    (folder / "model.onnx.data").unlink()
    assert project("view", "outside/model.onnx", "-o", "without.html").code == 0
    shown = [(project.folder / name).read_text() for name in ("with.html", "without.html")]
    assert shown[0].partition("<h2")[2] == shown[1].partition("<h2")[2]


def test_a_file_that_is_cut_off_is_reported(project):
    path = project.folder / "model.onnx"
    path.write_bytes(path.read_bytes()[:5_000])
    seen = project("view", "model.onnx")
    assert seen.code == 1
    assert "model.onnx is not an ONNX model" in seen.err
    assert "check that the file is complete" in seen.err
    path.write_bytes(b"")
    seen = project("view", "model.onnx")
    assert seen.code == 2
    assert "model.onnx is not an ONNX model: it has no graph" in seen.err


def test_sensitivity_next_to_the_model_is_shown_or_refused(project):
    report = project.folder / "sensitivity.json"
    report.write_text(
        '{"ranked_by": "cosine_mean", "nodes": [{"name": "", "measured": true, "cosine_mean": 0.5}], "blocks": []}'
    )
    seen = project("view", "model.onnx")
    assert seen.out.endswith(" KB, with sensitivity\n")
    report.write_text("{")
    seen = project("view", "model.onnx")
    assert seen.code == 1
    assert "sensitivity.json is not a sensitivity report" in seen.err


def test_netron_is_named_where_it_is_not_installed(project, monkeypatch):
    monkeypatch.setitem(sys.modules, "netron", None)
    seen = project("view", "model.onnx", "--netron")
    assert seen.code == 2
    assert "error: netron is not installed" in seen.err
    assert "fix: python -m pip install netron" in seen.err
    assert "analytics" not in seen.err  # nothing was contacted


@pytest.fixture
def browser(project):
    """What stands in for a browser: it writes down what it was asked to open."""
    asked = project.folder / "asked"
    script = project.write(
        "browser.py", f"import sys; open({str(asked)!r}, 'w').write(sys.argv[1])"
    )
    return {"BROWSER": f"{sys.executable} {script} %s"}, asked


def opened(asked):
    """The address that a browser was asked to open, once it was."""
    for _ in range(1200):
        if asked.exists() and asked.read_text():
            return asked.read_text()
        time.sleep(0.05)
    raise AssertionError("no browser was started")


@pytest.mark.slow
def test_the_page_is_opened_on_request(project, browser):
    surroundings, asked = browser
    seen = Project(project.folder)("view", "model.onnx", "--open", env=surroundings)
    assert (seen.code, seen.err) == (0, "")
    assert opened(asked) == (project.folder / "model.view.html").as_uri()


@pytest.mark.slow
def test_netron_serves_the_model_after_a_word_about_its_outside_calls(project, browser):
    surroundings, asked = browser
    with subprocess.Popen(
        [sys.executable, "-m", "onnxbuild", "view", "model.onnx", "--netron"],
        cwd=project.folder, env=os.environ | surroundings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=heed_signals,  # noqa: PLW1509 - this process has no threads
    ) as process:  # fmt: skip
        try:
            address = opened(asked)
            with urllib.request.urlopen(f"{address}/data/model.onnx") as answer:
                served = answer.read()
        finally:
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    assert served == (project.folder / "model.onnx").read_bytes()
    assert process.returncode == 0, err
    assert "analytics services as it opens (analytics.google.com, ipinfo.io)" in err
    assert out.startswith("serving model.onnx; press Ctrl+C to end\n")


@pytest.mark.slow
def test_a_built_variant_is_named_as_in_its_recipe(tmp_path):
    real = make_project(tmp_path / "real")
    missing = real("view", "tiny:fp32")
    assert missing.code == 2
    assert "fix: onnxbuild run tiny.yaml --only tiny:fp32" in missing.err
    assert real.run("--only", "fp32/package").code == 0
    seen = real("view", "tiny:fp32")
    assert seen.code == 0
    assert seen.out.startswith("tiny-fp32.view.html: ")
    assert "<h1>tiny:fp32</h1>" in (real.folder / "tiny-fp32.view.html").read_text()
