"""The hooks of this repository, by pre-commit itself, in a scratch repository that takes them from here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.completion.test_candidates import RECIPE

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def test_the_manifest_is_valid():
    subprocess.run(
        [BIN / "pre-commit", "validate-manifest", ROOT / ".pre-commit-hooks.yaml"], check=True
    )


def git(folder, *arguments):
    subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=True)


@pytest.fixture(scope="module")
def hooks(tmp_path_factory):
    """A repository with the hooks as they are here now: committed or not, and no more than pre-commit needs."""
    source = tmp_path_factory.mktemp("source")
    (source / ".pre-commit-hooks.yaml").write_text((ROOT / ".pre-commit-hooks.yaml").read_text())
    git(source, "init", "-q")
    git(source, "add", ".")
    git(source, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "hooks")
    return source


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    (root / "recipes/models").mkdir(parents=True)
    (root / "recipes/tiny.yaml").write_text(RECIPE)
    (root / "recipes/models/tiny.py").write_text("def load():\n    return None\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    return root


@pytest.fixture
def tried(project, hooks, tmp_path):
    def run(hook):
        environment = {
            name: each
            for name, each in os.environ.items()
            if not name.startswith(("GIT_", "ONNXBUILD"))
        }
        environment |= {
            "PRE_COMMIT_HOME": str(tmp_path / "pre-commit"),
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        }
        done = subprocess.run(
            [BIN / "pre-commit", "try-repo", hooks, hook, "--all-files", "--color=never"],
            cwd=project,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    return run


@pytest.mark.slow
def test_lint_passes_and_names_each_fault_with_its_line(project, tried):
    code, said = tried("onnxbuild-lint")
    assert code == 0, said
    assert "onnxbuild lint" in said
    assert "Passed" in said
    assert "[WARNING]" not in said
    (project / "recipes/tiny.yaml").write_text(RECIPE.replace("outputs", "outptus"))
    code, said = tried("onnxbuild-lint")
    assert code == 1
    assert "- exit code: 2" in said
    assert "recipes/tiny.yaml:6:1: " in said
    assert "fix: " in said


@pytest.mark.slow
def test_a_stale_schema_is_written_anew_and_reported(project, tried):
    schema = project / "schemas/recipe.schema.json"
    schema.parent.mkdir()
    schema.write_text("{}")
    git(project, "add", ".")
    code, said = tried("onnxbuild-schema")
    assert code == 1
    assert "files were modified by this hook" in said
    assert schema.read_text() == (ROOT / "schemas/recipe.schema.json").read_text()
    git(project, "add", ".")
    assert tried("onnxbuild-schema")[0] == 0
