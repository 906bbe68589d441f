"""`onnxbuild report`, and the page that a build leaves."""

import json
import re
import shlex
import shutil
import subprocess
from html import unescape

import pytest

from tests.cli.conftest import Project, make_project

pytestmark = pytest.mark.slow

TWO = "quantization: {fp32: none, int8: {mode: dynamic, validate: {cosine_min: MIN}}}\n"


@pytest.fixture(scope="module")
def once_built(tmp_path_factory):
    project = make_project(tmp_path_factory.mktemp("report") / "project")
    project.edit("tiny.yaml", "quantization: {fp32: none}\n", TWO.replace("MIN", "0.5"))
    assert project.run().code == 0
    return project


@pytest.fixture
def two(once_built, tmp_path):
    """A built project of two variants, at a path of its own."""
    return Project(shutil.copytree(once_built.folder, tmp_path / "project"))


def said(project, name="report.html"):
    """What a reader sees, without markup."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", (project.folder / name).read_text()))


def test_what_is_not_built_is_an_error_with_the_command_to_type(cheap):
    done = cheap("report", "tiny.yaml")
    assert done.code == 2
    assert "error: 'tiny' is not built as it is now: there is nothing to report" in done.err
    assert "fix: onnxbuild run tiny.yaml" in done.err
    assert not (cheap.folder / "report.html").exists()
    assert not (cheap.folder / "artifacts").exists()


def test_the_command_to_type_has_the_options_and_is_quoted_for_a_shell(cheap):
    cheap.write("my model.yaml", (cheap.folder / "tiny.yaml").read_text())
    options = ["--set", "description=two words", "--store", "an other"]
    done = cheap("report", "my model.yaml", *options)
    assert done.code == 2
    (fix,) = [line for line in done.err.splitlines() if "fix: " in line]
    assert shlex.split(fix.partition("fix: ")[2]) == [
        "onnxbuild",
        "run",
        "my model.yaml",
        *options,
    ]


def test_a_build_is_reported_from_verdicts_to_steps(two):
    subprocess.run(["git", "init", "-q"], cwd=two.folder, check=True)
    subprocess.run(["git", "add", "-A"], cwd=two.folder, check=True)
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *author, "commit", "-qm", "first"], cwd=two.folder, check=True)
    assert two.run().code == 0
    done = two("report", "tiny.yaml")
    assert (done.code, done.err) == (0, "")
    assert "tiny: Ready to ship: fp32 and int8 pass all 4 gates." in done.out
    text = said(two)
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=two.folder, capture_output=True, text=True, check=True
    ).stdout.strip()
    for shown in (
        "Ready to ship", "int8/quantize", "models/tiny.py", "helper.py", commit,
        "entrypoint: models/tiny.py:load", "onnxruntime", "The last run of any of them",
    ):  # fmt: skip
        assert shown in text, shown
    assert str(two.folder) not in (two.folder / "report.html").read_text()
    two("report", "tiny.yaml", "-o", "again.html")
    assert (two.folder / "again.html").read_bytes() == (two.folder / "report.html").read_bytes()
    assert "not as committed" not in text
    two.write("tiny.yaml", (two.folder / "tiny.yaml").read_text() + "# edited\n")
    assert two("report", "tiny.yaml").code == 0
    assert "1 file not as committed: tiny.yaml" in said(two)


def test_the_verdicts_as_json_and_the_page_on_standard_output(two):
    assert two.run().code == 0
    done = two("report", "tiny.yaml", "--json", "-o", "docs/page.html")
    found = json.loads(done.out)
    assert found["recipes"]["tiny"]["state"] == "passed"
    assert found["bytes"] == (two.folder / "docs/page.html").stat().st_size
    printed = two("report", "tiny.yaml", "-o", "-")
    assert printed.out == (two.folder / "docs/page.html").read_text()


def test_a_failed_gate_is_in_the_page_and_in_the_exit_code(project):
    project.edit("tiny.yaml", "quantization: {fp32: none}\n", TWO.replace("MIN", "0.99999999"))
    assert project.run("--keep-going").code == 3
    done = project("report", "tiny.yaml")
    assert done.code == 3
    assert "tiny: Don't ship int8: 1 gate failed; fp32 passes all 2 gates." in done.out
    text = said(project)
    assert "is below 1" in text or "is below 0.99999999" in text
    assert "What failed, and what to try" in text


def test_an_edit_that_was_not_built_is_said_in_the_page(two):
    assert two.run().code == 0
    two.edit("tiny.yaml", "min_samples: 3", "min_samples: 4")
    assert two("report", "tiny.yaml").code == 0
    assert "1 step would run to bring this up to date: onnxbuild run tiny.yaml" in said(two)


def test_several_recipes_have_an_index_and_earlier_builds_are_lines(two):
    other = (two.folder / "tiny.yaml").read_text().replace("name: tiny", "name: other")
    two.write("other.yaml", other)
    assert two("run", "tiny.yaml", "other.yaml").code == 0
    two.edit("models/tiny.py", "load(width=8)", "load(width=9)")
    assert two.run().code == 0
    done = two("report", "tiny.yaml", "other.yaml", "--set", "opset=17")
    assert done.code == 2, "another opset was never built"
    assert "'tiny', 'other' are not built as they are now" in done.err
    assert "onnxbuild run tiny.yaml --set opset=17 && onnxbuild run other.yaml" in done.err
    assert two("run", "other.yaml").code == 0
    done = two("report", "tiny.yaml", "other.yaml")
    assert done.code == 0
    page = (two.folder / "report.html").read_text()
    assert 'href="#r0-top"' in page
    assert 'id="r1-top"' in page
    text = said(two)
    assert "2 builds, the oldest at the left." in text
    assert "size, bytes, by build" in text
    assert "2 recipes" in text


def test_a_recipe_that_is_not_built_is_a_row_of_the_index_with_its_command(two):
    other = (two.folder / "tiny.yaml").read_text().replace("name: tiny", "name: other")
    two.write("other.yaml", other.replace("version: 1", "version: 1\nopset: 17"))
    assert two.run().code == 0
    done = two("report", "other.yaml", "tiny.yaml")
    assert done.code == 0
    assert "other: Not built: onnxbuild run other.yaml" in done.out
    page = (two.folder / "report.html").read_text()
    text = said(two)
    assert "Recipes Recipe Verdict Variants other not built onnxbuild run other.yaml" in text
    assert "tiny passed fp32 int8" in text
    assert "Variants of other" not in text
    assert 'href="#r1-top"' in page, "to tiny"
    assert 'href="#r0-top"' not in page
    found = json.loads(two("report", "other.yaml", "tiny.yaml", "--json").out)["recipes"]
    assert found["other"] == {
        "state": "not built",
        "headline": "Not built: onnxbuild run other.yaml",
    }
    assert found["tiny"]["state"] == "passed"


def test_what_the_last_run_did_not_touch_is_not_counted_as_found_in_the_store(two):
    assert two.run("--only", "fp32/check", "--force", "export").ran == ["export"]
    assert two("report", "tiny.yaml").code == 0
    text = said(two)
    assert re.search(r"UTC, built 1 and took 2 from the store; 9 were not in it\.", text)
    assert "int8/check check not in that run" in text
    assert "optimize optimize from the store" in text


def test_a_page_on_standard_output_leaves_no_room_for_json(cheap):
    done = cheap("report", "tiny.yaml", "-o", "-", "--json")
    assert done.code == 2
    assert json.loads(done.out)["code"] == 2, "an error, and no page"
    assert "--json prints on standard output, and so does `-o -`" in done.err
    assert "fix: write the page to a file: -o report.html" in done.err


def test_a_build_that_asks_leaves_a_page_that_is_cached_and_the_same_anywhere(two, tmp_path):
    with (two.folder / "tiny.yaml").open("a") as file:
        file.write("report: html\n")
    first = two.run()
    assert first.code == 0
    assert "report" in first.ran
    assert "report" not in first.out.partition("variant")[2].partition("\nin ")[0], "no variant"
    path = "artifacts/out/tiny/report/report.html"
    page = (two.folder / path).read_bytes()
    assert b"Ready to ship" in page
    assert two.run().ran == []
    moved = Project(tmp_path / "elsewhere")
    shutil.copytree(two.folder, moved.folder, ignore=shutil.ignore_patterns("index.db"))
    shutil.rmtree(moved.folder / "artifacts/out")
    again = moved.run("--only", "report")
    assert again.code == 0
    assert (moved.folder / path).read_bytes() == page


def test_after_a_failed_gate_the_page_that_was_asked_for_shows_what_failed(two):
    with (two.folder / "tiny.yaml").open("a") as file:
        file.write("report: html\n")
    page = two.folder / "artifacts/out/tiny/report/report.html"
    assert two.run().code == 0
    good = page.read_bytes()
    two.edit("tiny.yaml", "cosine_min: 0.5", "cosine_min: 0.99999999")
    failed = two.run("--keep-going")
    assert failed.code == 3
    line = "report of tiny, with what failed: artifacts/out/tiny/report/report.html"
    assert line in failed.err.splitlines()
    assert "out/tiny/report still holds" not in failed.out + failed.err
    assert "Don't ship int8: 1 gate failed; fp32 passes all 2 gates." in unescape(
        said(two, page.relative_to(two.folder))
    )
    assert line in two.run("--json").err, "where the JSON is not"
    two.edit("tiny.yaml", "cosine_min: 0.99999999", "cosine_min: 0.5")
    again = two.run()
    assert again.code == 0
    assert page.read_bytes() == good
    assert "put back" not in again.out + again.err, "nobody has changed it"
    page.unlink()
    two.edit("models/tiny.py", "import torch\n", "import nothing_of_this_name\n")
    broken = two.run()
    assert broken.code == 1
    assert "with what failed" not in broken.err, "nothing is built that could be shown"
    assert not page.exists()
