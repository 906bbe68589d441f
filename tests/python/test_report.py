"""`.report()` of builds and variants: what is on the page, of several recipes, after a failure, from another folder."""

# ruff: noqa: F811 - fixtures are imported
import re
import subprocess
from html import unescape

import pytest

import onnxbuild as ob
from tests.cli.conftest import (
    project,  # noqa: F401 - a fixture
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warm_steps")]

TWO = "quantization: {fp32: none, int8: {mode: dynamic, validate: {cosine_min: MIN}}}\n"


@pytest.fixture
def two(project):
    """tiny with fp32 and int8, other with int8 and int8-weights: equal steps are shared."""
    project.edit("tiny.yaml", "quantization: {fp32: none}\n", TWO.replace("MIN", "0.5"))
    text = (project.folder / "tiny.yaml").read_text().replace("name: tiny", "name: other")
    project.write("other.yaml", text.replace("fp32: none", "int8-weights: weight_only"))
    return project


def commit_all(folder):
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run(["git", *who, *command], cwd=folder, check=True)


def said(path):
    """What a reader sees, without markup."""
    text = path.read_text().partition("</style>")[2]
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text)))


def cards(path):
    return re.findall(r'<div class="card variant".*?<h3>(\S+) ', path.read_text(), re.DOTALL)


def test_a_builds_page_shows_all_that_was_asked_for_wherever_the_process_has_gone(
    two, tmp_path, monkeypatch
):
    monkeypatch.chdir(two.folder)
    build = ob.run(["tiny.yaml", "other.yaml"])
    page = build.report()
    assert page == two.folder / "report.html"
    assert "2 recipes" in said(page)
    assert cards(page) == ["fp32", "int8", "int8-weights", "int8"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("ONNXBUILD_STORE", "nothing-here")
    again = build.report()
    assert again == elsewhere / "report.html"
    assert cards(again) == cards(page)
    assert str(two.folder) not in again.read_text()
    with pytest.raises(ob.UsageError, match="`path` is empty"):
        build.report("")
    commit_all(two.folder)
    two.edit("tiny.yaml", "min_samples: 3", "min_samples: 4")
    edited = said(build["fp32"].report())
    assert "1 step would run to bring this up to date: onnxbuild run tiny.yaml" in edited
    assert "1 file not as committed" in edited


def test_a_variants_page_shows_its_recipe_alone_with_the_benchmark_of_the_whole(two, monkeypatch):
    monkeypatch.chdir(two.folder)
    build = ob.run(["tiny.yaml", "other.yaml"])
    pages = (("fp32", "tiny"), ("tiny:int8", "tiny"), ("other:int8", "other"))
    for key, recipe in pages:
        page = build[key].report()
        name = key.rpartition(":")[2]
        assert page == two.folder / f"report-{recipe}-{name}.html"
        text = said(page)
        assert cards(page) == [name]
        assert f"Ready to ship: {name} passes all 2 gates." in text
        assert "Recipes" not in text, "no index"
        assert "median latency" in text, "measured next to the others"
        assert "would run" not in text, "it is built"
    steps = said(two.folder / "report-other-int8.html").partition("How it was built")[2]
    assert "export" in steps, "shared with tiny, where it is named"
    assert "int8-weights/check" not in steps


def test_after_a_failed_gate_pages_show_what_failed_and_what_passed(two, monkeypatch):
    monkeypatch.chdir(two.folder)
    two.edit("tiny.yaml", "cosine_min: 0.5", "cosine_min: 0.99999999")
    with (two.folder / "tiny.yaml").open("a") as file:
        file.write("report: html\n")
    with pytest.raises(ob.FailedBuildError) as raised:
        ob.run("tiny.yaml", keep_going=True)
    build = raised.value.build
    assert "Don't ship int8" in said(build.out / "tiny/report/report.html")
    assert "Don't ship int8: 1 gate failed; fp32 passes all 2 gates." in said(build.report())
    failed = said(build["int8"].report())
    assert "Don't ship int8: 1 gate failed; no variant passes." in failed
    assert "What failed, and what to try" in failed
    assert "Ready to ship: fp32 passes all 2 gates." in said(build["fp32"].report())
