"""The commands of the README, the tour and the release page run and print what the pages show.

Numbers and the order of lines aside.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
PAGES = {"README.md": 2, "docs/report.md": 1, "docs/tour.md": 12, "docs/release.md": 4}
"""Page -> how many commands it shows; a reader takes the pages in this order."""
_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
_YAML = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


def _commands(page: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (command, lines shown) for each `$ ` line of a page's console blocks."""
    for block in _BLOCK.findall((ROOT / page).read_text()):
        for part in block.split("$ ")[1:]:
            command, _, shown = part.partition("\n")
            yield command, [line for line in shown.splitlines() if line.strip()]


def test_the_recipe_in_the_readme_is_the_recipe_of_its_build():
    (shown,) = _YAML.findall((ROOT / "README.md").read_text())
    recipe = yaml.safe_load((ROOT / "recipes/digits.yaml").read_text())
    del recipe["description"]
    assert yaml.safe_load(shown) == recipe


def _masked(line: str) -> str:
    """A line without its numbers, digests, blanks and path to the project."""
    line = re.sub(r"\b[0-9a-f]{12}\b", "#", line)
    line = line.replace(" ?", "")  # measured on a machine that does other work, too
    line = re.sub(r"[-+]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?", "#", line)
    line = line.replace("# to # x", "# x")  # a wide interval stands in the ratio's place
    return re.sub(r"\s+", " ", line).strip()


@pytest.mark.slow
def test_the_pages_show_what_the_commands_print(tmp_path):
    project = tmp_path / "project"
    for name in ("recipes", "schemas"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, project / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", project)
    (project / ".gitignore").write_text("/artifacts/\n/dist/\n")
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    for key, value in (("user.name", "a"), ("user.email", "a@example.org")):
        subprocess.run(["git", "config", key, value], cwd=project, check=True)
    tools = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("ONNXBUILD_STORE", None)
    commands = {page: list(_commands(page)) for page in PAGES}
    assert {page: len(found) for page, found in commands.items()} == PAGES
    for command, shown in chain.from_iterable(commands.values()):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=project,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=400,
            check=False,
        )
        said = {_masked(line) for line in done.stdout.splitlines()}
        for line in shown:
            if line.strip() != "...":
                assert _masked(line) in said, (
                    f"$ {command}\nshows: {line}\nbut said:\n{done.stdout}"
                )
