"""Where Python looks for modules: PYTHONPATH, folders that code adds, copies of packages put first."""

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def place(project, tmp_path):
    """A folder outside of the project with a module that the model imports."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "outside.py").write_text("SEED = 1\n")
    project.edit(
        "models/tiny.py",
        "torch.manual_seed(0)\n",
        "import outside\n\n    torch.manual_seed(outside.SEED)\n",
    )
    return folder


def add_to_path(project, call):
    project.edit(
        "models/tiny.py", "import torch\n", f"import sys\n\nimport torch\n\nsys.path.{call}\n"
    )


def export(project, **env):
    return project("run", "tiny.yaml", "--only", "export", env=env)


def test_a_module_in_a_folder_outside_is_refused_with_what_to_do_and_found_by_it(project, place):
    add_to_path(project, f"append({str(place)!r})")
    refused = export(project)
    assert refused.code == 5, refused.out
    assert f"'outside' would be imported from {place}, which is on sys.path" in refused.out
    assert f"export PYTHONPATH={place}" in refused.out
    assert export(project, PYTHONPATH=str(place)).ran == ["export"]
    moved = place.rename(place.parent / "moved")
    assert export(project, PYTHONPATH=str(moved)).ran == []
    (moved / "outside.py").write_text("SEED = 2\n")
    assert export(project, PYTHONPATH=str(moved)).ran == ["export"]


def test_a_python_path_that_the_recipe_declares_is_honoured_by_all_processes(project, place):
    project.edit("tiny.yaml", "tiny.py:load}", f"tiny.py:load, env: {{PYTHONPATH: {place}}}}}")
    code = "import subprocess, sys\n\nsubprocess.run([sys.executable, '-c', 'import outside'], check=True)\n"
    project.edit("models/tiny.py", "import torch\n", f"import torch\n{code}")
    built = export(project)
    assert (built.code, built.ran) == (0, ["export"]), built.out
    (place / "outside.py").write_text("SEED = 2\n")
    assert export(project).ran == ["export"]


def test_a_copy_of_a_loaded_package_that_is_put_first_is_refused(project):
    copy = project.folder / "vendor/numpy/__init__.py"
    copy.parent.mkdir(parents=True)
    copy.write_text("VENDORED = True\n")
    add_to_path(project, "insert(0, 'vendor')")
    project.edit(
        "models/tiny.py",
        "    torch.manual_seed(0)\n",
        "    import numpy\n\n    torch.manual_seed(0)\n",
    )
    refused = export(project)
    assert refused.code == 1
    assert "plain Python would import 'numpy' from vendor/numpy/__init__.py" in refused.out


def test_what_was_asked_about_and_absent_is_locked_as_absent(project, place):
    asked = """\
from importlib.metadata import PackageNotFoundError, version

try:
    version("no-such-package")
except PackageNotFoundError:
    pass
"""
    project.edit("models/tiny.py", "import torch\n", f"{asked}import torch\n")
    env = {"PYTHONPATH": str(place)}
    assert project("lock", "tiny.yaml", env=env).code == 0
    assert "no-such-package: not installed" in (project.folder / "tiny.lock").read_text()
