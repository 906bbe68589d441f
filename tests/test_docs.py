"""The documents: links lead somewhere, every verb is described, nothing names a machine."""

import re
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

from onnxbuild.catalog import FEATURES
from onnxbuild.expansion.feature import ArtifactFormat
from onnxbuild.expansion.package_format import PackageFormat
from onnxbuild.terminal.at_a_glance import VERBS
from tests import test_cookbook, test_first_model, test_readme
from tests.pages import commands_elsewhere, programs
from tests.registry import test_page

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("artifacts/*.md")])
NOT_RUN = {
    "docs/cluster.md": "needs several machines; tests/cluster/test_tls.py does the same on loopback",
    "docs/gpu.md": "needs a GPU; its command is tried without one in tests/benchmarks",
    "docs/packages.md": "names RECIPE and a registry; tests/features/packages/test_oci.py pulls from a layout",
    "docs/watch.md": "goes on until q is pressed; tests/watching runs it on a terminal",
}
"""Page with console blocks that are run in no form -> why."""
NO_CONSOLE = {
    "docs/ci.md": [  # a workflow of GitHub's; tests/tools/test_action.py runs both
        "run: onnxbuild cache key recipes/*.yaml --github",
        "- run: onnxbuild run recipes/*.yaml --github --junit build/onnxbuild.xml",
    ]
}
"""Page -> the commands of onnxbuild that are in blocks of another kind."""
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
    run = {*test_readme.PAGES, *test_cookbook.PAGES, test_first_model.PAGE, test_page.PAGE}
    assert blocks - run == set(NOT_RUN)


def test_every_command_of_onnxbuild_is_in_a_console_block():
    found = {
        str(page.relative_to(ROOT)): lines
        for page in PAGES
        if (lines := commands_elsewhere(page.read_text()))
    }
    assert found == NO_CONSOLE


@pytest.mark.parametrize(
    "block",
    ["```sh\nonnxbuild run a.yaml\n```", "```sh title\ncd a\npython -m onnxbuild run a.yaml\n```"],
)
def test_a_command_outside_of_a_console_block_is_found(block):
    (line,) = commands_elsewhere(f"# Page\n\n{block}\n\nMore.\n\n```c++\nint a;\n```\n")
    assert line.endswith("onnxbuild run a.yaml")
    assert commands_elsewhere(block.replace("onnxbuild run", "onnxbuild-lint")) == []
    console = re.sub(r"```[a-z]+", "```console", block) if "```\n$" not in block else ""
    assert commands_elsewhere(console) == []


def test_every_python_block_that_uses_onnxbuild_is_run_by_a_test():
    pages = {str(page.relative_to(ROOT)) for page in PAGES if programs(str(page))}
    assert pages <= set(test_readme.PAGES)
    assert pages


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
