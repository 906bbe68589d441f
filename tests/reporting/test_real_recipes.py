"""The pages of real recipes in a real browser: digits is built here, of the others what their steps reported is recorded."""

import shutil
from pathlib import Path

import pytest

import onnxbuild as ob
from onnxbuild.onnxkit.drawing.markup import PAGE_MAX_BYTES
from onnxbuild.onnxkit.report_page.page import report_page
from tests.browser import assert_good, assert_readable, look_at, read_through
from tests.reporting.record import RECORDED, recorded
from tests.shared_results import SharedResults

pytestmark = pytest.mark.slow

RECIPES = Path(__file__).parents[2] / "recipes"
NAMES = ("bert", "gpt2", "minilm_search")


@pytest.mark.parametrize("name", NAMES)
def test_the_page_of_a_recorded_build_is_small_whole_and_the_same_anywhere(name, tmp_path):
    report = recorded(name, tmp_path / "one")
    page = report_page([report])
    assert len(page.encode()) < PAGE_MAX_BYTES
    assert "would be too large" not in page
    assert page == report_page([recorded(name, tmp_path / "elsewhere/two")])
    keys = {section.key for section in report.sections}
    assert {"verdicts", "tradeoff", "error", "latency", "cost", "signature", "contents"} <= keys
    assert report.state == "passed"
    assert {path.stem for path in RECORDED.glob("*.json")} == set(NAMES)


@pytest.mark.usefixtures("warm_steps")
def test_pages_of_real_recipes_are_good_in_a_browser_by_keyboard_and_on_paper(
    tmp_path, shared_results
):
    for name in NAMES:
        page = report_page([recorded(name, tmp_path / f"{name}-files")])
        (tmp_path / f"{name}.html").write_text(page)
    digits = built_digits(tmp_path, shared_results)
    pages = [*(tmp_path / f"{name}.html" for name in NAMES), digits]
    (tmp_path / "seen").mkdir()
    assert_good(look_at(pages, tmp_path / "seen", pictures=False))
    assert_readable(read_through(pages, tmp_path / "seen"))


def built_digits(folder: Path, shared_results: SharedResults) -> Path:
    """The verb's page of recipes/digits.yaml, built in a copy of the project with a short benchmark."""
    shutil.copytree(RECIPES, folder / "project/recipes")
    (folder / "project/pyproject.toml").write_text("")
    shared_results.lend(folder / "project/artifacts")
    build = ob.run(
        folder / "project/recipes/digits.yaml",
        settings={"benchmark.max_time_s": 0.2, "benchmark.min_samples": 5},
    )
    page = build.report(folder / "digits.html")
    assert page.stat().st_size < PAGE_MAX_BYTES
    assert build.report(folder / "again.html").read_bytes() == page.read_bytes()
    assert "How it was built" in page.read_text()
    return page
