"""The documents: links lead somewhere, every verb is described, nothing names a machine."""

from __future__ import annotations

import re
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

from onnxbuild.catalog import FEATURES
from onnxbuild.expansion.feature import ArtifactFormat, PackageFormat
from onnxbuild.terminal.help import VERBS
from tests import test_first_model, test_readme
from tests.registry import test_page

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("artifacts/*.md")])
_LINK = re.compile(r"\[[^\]]*\]\(([^)#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in _LINK.findall(page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_verb_is_on_the_page_of_commands():
    text = (ROOT / "docs/commands.md").read_text()
    missing = [verb for verb in VERBS if f"onnxbuild {verb}" not in text]
    assert missing == []


def test_every_console_block_is_run_by_a_test():
    blocks = {str(page.relative_to(ROOT)) for page in PAGES if "```console" in page.read_text()}
    run = {*test_readme.PAGES, test_first_model.PAGE, test_page.PAGE}
    assert blocks - run == {
        "docs/gpu.md"
    }  # needs a GPU; its command is tried without one in tests/benchmarks


@pytest.mark.parametrize(
    ("page", "family"), [("deploy.md", ArtifactFormat), ("packages.md", PackageFormat)]
)
def test_every_option_is_in_the_table_of_its_format(page, family):
    text = (ROOT / "docs" / page).read_text()
    formats = [each for each in FEATURES if isinstance(each, family)]
    assert formats
    for each in formats:
        _, found, section = text.partition(f"\n## `{each.name}`")
        assert found, f"{page} has no section `{each.name}`"
        rows = [row for row in section.split("\n## ")[0].splitlines() if row.startswith("| `")]
        named = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
        missing = {option.name for option in fields(each.options)} - named
        assert not missing, f"{page} lacks options of `{each.name}`"


def test_every_decision_has_a_number_of_its_own():
    numbers = [page.name[:4] for page in sorted((ROOT / "docs/decisions").glob("*.md"))]
    assert numbers == [f"{n:04}" for n in range(1, len(numbers) + 1)]


def test_no_tracked_file_names_a_machine():
    done = subprocess.run(
        ["git", "ls-files", "*.md", "*.py", "*.yaml", "*.toml", "Makefile", "*.txt"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    named = re.compile(r"(?<![\w.])/(home|root|Users)/\w")
    for name in done.stdout.split():
        path = ROOT / name
        if path.is_file() and not name.startswith("tests/"):
            assert not named.search(path.read_text(encoding="utf-8")), name
