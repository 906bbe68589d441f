"""Relative paths in user code mean what they mean by hand, in the project's root."""

import subprocess
import sys

import pytest

SEED = "    torch.manual_seed(0)"
BY_HAND = "import sys; sys.path.insert(0, 'models'); import tiny; tiny.load()"


def reading(project, code: str) -> None:
    """Let the model's loader run `code`, and see that it runs by hand in the project's root."""
    project.edit("models/tiny.py", SEED, f"{SEED}\n    {code}")
    subprocess.run([sys.executable, "-c", BY_HAND], cwd=project.folder, check=True)


def export(project):
    return project.run("--only", "export")


@pytest.mark.slow
def test_a_declared_file_is_read_by_its_relative_path_and_an_edit_of_it_is_seen(project):
    project.write("weights/w.txt", "8")
    reading(project, "width = int(open('weights/w.txt').read())")
    seen = export(project)
    assert seen.code == 5
    assert "'weights/w.txt' is read but not declared (read at models/tiny.py:" in seen.out
    assert "`files: [weights/w.txt]`" in seen.out

    declared = "{entrypoint: models/tiny.py:load, files: [weights/w.txt]}"
    project.edit("tiny.yaml", "{entrypoint: models/tiny.py:load}", declared)
    assert export(project).code == 0
    assert export(project).ran == []
    project.write("weights/w.txt", "6")
    assert export(project).ran == ["export"]


@pytest.mark.slow
def test_a_relative_file_that_is_there_is_never_taken_for_absent(project):
    """Code that goes on without it would ship a model that was never trained."""
    project.write("weights/w.txt", "8")
    project.edit("models/tiny.py", "import torch\n", "import torch, os\n")
    reading(
        project,
        "width = int(open('weights/w.txt').read()) if os.path.exists('weights/w.txt') else 8",
    )
    assert export(project).code == 5


@pytest.mark.slow
def test_a_relative_import_folder_and_a_relative_listing_are_observed(project):
    project.write("src/sized.py", "WIDTH = 8\n")
    project.write("src/parts/one.txt", "")
    project.edit("models/tiny.py", "import torch\n", "import torch, os, sys\n")
    reading(
        project,
        "sys.path.insert(0, 'src'); import sized; width = sized.WIDTH; os.listdir('src/parts')",
    )
    assert export(project).code == 0
    assert export(project).ran == []
    project.write("src/sized.py", "WIDTH = 6\n")
    assert export(project).ran == ["export"]
    project.write("src/parts/two.txt", "")
    assert export(project).ran == ["export"]


@pytest.mark.slow
def test_what_is_written_next_to_goes_with_the_step_and_the_project_stays_as_it_was(project):
    reading(project, "open('cache.txt', 'w').write('8'); width = int(open('cache.txt').read())")
    (project.folder / "cache.txt").unlink()  # by hand, it was left here
    assert export(project).code == 0
    assert not (project.folder / "cache.txt").exists()


@pytest.mark.slow
def test_a_file_above_the_project_is_named_and_read_once_it_is_declared(project):
    (project.folder.parent / "w.txt").write_text("8")
    reading(project, "width = int(open('../w.txt').read())")
    seen = export(project)
    assert seen.code == 5, seen.out
    assert "w.txt' is read but not declared (read at models/tiny.py:" in seen.out
    path = seen.out.partition("`files: [")[2].partition("]`")[0]
    declared = f"{{entrypoint: models/tiny.py:load, files: [{path}]}}"
    project.edit("tiny.yaml", "{entrypoint: models/tiny.py:load}", declared)
    assert export(project).code == 0
