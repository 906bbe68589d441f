"""Verbs that say they write nothing leave models, locks and everything else of a project as they are.

The store's own memory may grow where a verb has to build: blobs, results, logs, the index.
"""

import shutil
import subprocess

import pytest

from tests.cli.conftest import CheapProject, Project, make_cheap_project, make_project

GROWS = tuple(
    f"artifacts/{each}" for each in ("cas", "ac", "runs", "locks", "tmp", "memo", "index.db")
)
ANOTHER = ("--set", "opset=17")


def everything(project):
    """Path -> content of all files but the store's memory; folders have none."""
    found = {}
    for path in project.folder.rglob("*"):
        name = path.relative_to(project.folder).as_posix()
        if not name.startswith(GROWS):
            found[name] = path.read_bytes() if path.is_file() else b""
    return found


def _locked(project):
    assert project("lock", "tiny.yaml").code == 0
    assert "artifacts/out/tiny/fp32/model.onnx" in everything(project)
    return project


@pytest.fixture(scope="module")
def once_locked(tmp_path_factory):
    return _locked(make_cheap_project(tmp_path_factory.mktemp("nothing") / "project"))


@pytest.fixture
def locked(once_locked, tmp_path):
    return CheapProject(shutil.copytree(once_locked.folder, tmp_path / "project"))


@pytest.fixture(scope="module")
def once_really_locked(tmp_path_factory):
    return _locked(make_project(tmp_path_factory.mktemp("really") / "project"))


@pytest.fixture
def really_locked(once_really_locked, tmp_path):
    return Project(shutil.copytree(once_really_locked.folder, tmp_path / "project"))


VERBS = {
    "lock --check of another recipe": (("lock", "tiny.yaml", "--check", *ANOTHER), 4),
    "lock --check": (("lock", "tiny.yaml", "--check"), 0),
    "plan": (("plan", "tiny.yaml", *ANOTHER), 0),
    "why": (("why", "tiny:export", *ANOTHER), 0),
    "graph": (("graph", "tiny.yaml", *ANOTHER), 0),
    "cache verify": (("cache", "verify"), 0),
    "a refused lock --update": (("lock", "tiny.yaml", "--update", "numpy"), 4),
}
OF_REAL_MODELS = {
    "inspect": ("inspect", "tiny:fp32"),
    "diagnose": ("diagnose", "tiny:fp32", *ANOTHER),
    "bench": ("bench", "tiny.yaml", *ANOTHER),
    "reproduce": ("reproduce", "tiny.yaml", "--only", "fp32/package", *ANOTHER),
}


@pytest.mark.parametrize("case", VERBS, ids=lambda name: name.replace(" ", "-"))
def test_nothing_but_the_stores_memory_changes(locked, case):
    arguments, code = VERBS[case]
    if case == "a refused lock --update":
        locked.edit("models/helper.py", "ReLU", "GELU")
    before = everything(locked)
    done = locked(*arguments)
    assert done.code == code, done.out + done.err
    assert everything(locked) == before


@pytest.mark.slow
@pytest.mark.parametrize("case", OF_REAL_MODELS)
def test_verbs_that_look_at_models_change_nothing_else(really_locked, case):
    before = everything(really_locked)
    done = really_locked(*OF_REAL_MODELS[case])
    assert done.code == 0, done.out + done.err
    assert everything(really_locked) == before


def test_what_was_checked_is_laid_by_the_next_run(locked):
    """A check that built all of it is no reason to call an undelivered build up to date."""
    locked.edit("models/helper.py", "ReLU", "GELU")
    model = locked.folder / "artifacts/out/tiny/fp32/model.onnx"
    old = model.read_bytes()
    assert locked("lock", "tiny.yaml", "--check").code == 4
    assert model.read_bytes() == old
    done = locked.run()
    assert (done.code, done.ran) == (0, [])
    assert model.read_bytes() != old
    assert locked.run().out.endswith("up to date: 8 steps, nothing to do\n")
    locked.edit("models/helper.py", "GELU", "SiLU")
    new = model.read_bytes()
    assert locked("lock", "tiny.yaml").code == 0
    assert model.read_bytes() != new


@pytest.mark.slow
def test_verify_changes_nothing_of_the_project_and_the_release(really_locked):
    locked = really_locked
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org")
    locked.write(".gitignore", "/artifacts/\n/dist/\n__pycache__/\n")
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "a commit")):
        subprocess.run([*git, *arguments], cwd=locked.folder, check=True)
    assert locked("release", "tiny.yaml", "--version", "1.0.0").code == 0
    before = everything(locked)
    done = locked("verify", "dist/tiny-1.0.0", "--run", "--rebuild")
    assert done.code == 0, done.out + done.err
    assert everything(locked) == before
