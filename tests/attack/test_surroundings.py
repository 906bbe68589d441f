"""What a shell is set to and nobody declared: it reaches no step, or it enters the keys."""

import shutil

import pytest

pytestmark = pytest.mark.slow

SEEDED_BY_ALL = """\
import os

os.environ.pop("TMPDIR"), os.environ.pop("PWD", "")
home = os.environ.pop("HOME")
texts = [*map("=".join, sorted(os.environ.items())), *os.listdir(home)]
texts += [str(os.path.exists(os.path.expanduser("~/.netrc"))), oct(os.umask(0))]
torch.manual_seed(sum(map(ord, "".join(texts))))
"""
ONE = {"HOME": "{}/one", "USER": "one", "LOGNAME": "one", "PATH": "/usr/bin:/bin", "EXTRA": "1"}
OTHER = {"HOME": "{}/another", "USER": "another", "PATH": "/opt:/usr/bin:/bin"}


def plant(project):
    code = "    ".join(SEEDED_BY_ALL.splitlines(keepends=True))
    project.edit("models/tiny.py", "torch.manual_seed(0)\n", code)


def test_whose_shell_it_is_does_not_get_into_a_model(project, tmp_path):
    plant(project)
    for name in ("one", "another"):
        (tmp_path / name).mkdir()
    (tmp_path / "another/.netrc").touch()
    one, other = (
        {name: text.format(tmp_path) for name, text in each.items()} for each in (ONE, OTHER)
    )
    made = project("lock", "tiny.yaml", env=one)
    assert made.code == 0, made.out + made.err
    there = tmp_path / "elsewhere/deeper"
    shutil.copytree(project.folder, there, ignore=shutil.ignore_patterns("artifacts"))
    again = project("run", "tiny.yaml", "--only", "fp32", env=other)
    assert (again.code, again.ran) == (0, [])
    project.folder = there
    held = project("run", "tiny.yaml", "--locked", env=other)
    assert held.code == 0, held.out + held.err


def test_a_variable_that_steps_see_enters_the_keys_of_those_that_run_code(project):
    plant(project)
    arguments = ("run", "tiny.yaml", "--only", "optimize")
    plain = {"CUDA_VISIBLE_DEVICES": "0"}
    assert project(*arguments, env=plain).ran == ["export", "optimize"]
    assert project(*arguments, env=plain).ran == []
    changed = project(*arguments, env={"CUDA_VISIBLE_DEVICES": "1"})
    assert "export" in changed.ran
    assert "host CUDA_VISIBLE_DEVICES: 0 -> 1" in changed.out


def test_what_a_fresh_build_counts_otherwise_is_found(project):
    code = "import multiprocessing\n    torch.manual_seed(multiprocessing.cpu_count())\n"
    project.edit("models/tiny.py", "torch.manual_seed(0)\n", code)
    seen = project("reproduce", "tiny.yaml", "--only", "export")
    assert seen.code == 4, seen.out
    assert "depends on the number of cores" in seen.err
