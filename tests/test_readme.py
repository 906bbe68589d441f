"""The commands of the README and the pages that follow it run and print what the pages show.

Numbers and the order of lines aside. A command ends with the exit code that the page says, `# exit code 1`, else with 0.
"""

import re
import shutil
import subprocess

import pytest
import yaml

from tests.pages import ROOT, assert_shown, commands, environment, exit_code, programs, said

PAGES = {
    "README.md": 2,
    "docs/ci.md": 2,
    "docs/report.md": 1,
    "docs/tour.md": 13,
    "docs/view.md": 2,
    "docs/python.md": 0,
    "docs/release.md": 4,
    "docs/diff.md": 5,
    "docs/providers.md": 3,
}
"""Page -> how many commands it shows; a reader takes the pages in this order."""

NOT_RUN = {
    "onnxbuild bench": "the tour has made no release of bert; tests/cli/test_bench_programs.py compares with one",
    "onnxbuild plan --since": "a commit of 300 recipes; tests/cli/test_plan_since.py makes one",
}
"""Beginning of a command -> why it is not run."""

_YAML = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


def test_the_recipe_in_the_readme_is_the_recipe_of_its_build():
    (shown,) = _YAML.findall((ROOT / "README.md").read_text())
    recipe = yaml.safe_load((ROOT / "recipes/digits.yaml").read_text())
    del recipe["description"]
    assert yaml.safe_load(shown) == recipe


@pytest.mark.slow
def test_the_pages_show_what_the_commands_print(tmp_path, shared_results):
    project = tmp_path / "project"
    for name in ("recipes", "schemas"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, project / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", project)
    (project / ".gitignore").write_text("/artifacts/\n/dist/\n")
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    found = {page: list(commands(page)) for page in PAGES}
    assert {page: len(each) for page, each in found.items()} == PAGES
    environ = environment()
    for page, shown_commands in found.items():
        for command, shown in shown_commands:
            if not command.startswith(tuple(NOT_RUN)):
                code, printed = said(command, project, environ)
                assert code == exit_code(command), f"$ {command}\nended with {code}:\n{printed}"
                assert_shown(command, shown, printed)
        for program in programs(page):
            (project / "program.py").write_text(program)
            code, printed = said("python program.py", project, environ)
            assert code == 0, f"{page}: {program}\n{printed}"
    shared_results.keep(project / "artifacts")
