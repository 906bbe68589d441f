"""`onnxbuild lock` and `run --locked`: what is written down, and what is refused, by name."""

import errno
import shutil
import sys

import pytest
import yaml

from onnxbuild.adapters.clock import settle
from onnxbuild.adapters.disk.atomic_files import store_error
from tests.cli.conftest import CheapProject, make_cheap_project, make_project


@pytest.fixture
def project(cheap):
    return cheap


@pytest.fixture(scope="module")
def once_locked(tmp_path_factory):
    project = make_cheap_project(tmp_path_factory.mktemp("locked") / "project")
    done = project("lock", "tiny.yaml")
    assert done.code == 0, done.out + done.err
    assert "wrote tiny.lock: 8 steps, 2 sources, 0 files" in done.out
    return project


@pytest.fixture
def locked(once_locked, tmp_path):
    """A built and locked project, at a path of its own."""
    project = CheapProject(shutil.copytree(once_locked.folder, tmp_path / "project"))
    settle()  # a run that begins in the tick of a change notes nothing
    return project


def test_a_lock_says_all_and_names_no_machine_path(locked):
    text = (locked.folder / "tiny.lock").read_text()
    lock = yaml.safe_load(text)
    assert set(lock["sources"]) == {"models/tiny.py", "models/helper.py"}
    assert {"torch", "numpy", "onnx"} <= set(lock["packages"])
    assert len(lock["packages"]["torch"].split()[-1]) == 64
    assert lock["python"].startswith(sys.implementation.cache_tag)
    assert lock["host"]["cpu"]
    assert lock["resolved"]["tiny"]["opset"] == 18
    assert len(lock["steps"]["tiny:export"]["outputs"]["model"]["sha256"]) == 64
    assert lock["steps"]["tiny:benchmark"]["outputs"] == {}
    assert lock["measurements"]["tiny:benchmark"]["points"]
    assert lock["recipe"] == "tiny.yaml"
    for path in (locked.folder, sys.prefix, "/tmp"):
        assert str(path) not in text
    keys = [line.split(":")[0] for line in text.splitlines() if line[0] not in "# "]
    assert keys == sorted(keys)


def test_a_locked_run_passes_and_is_up_to_date_at_a_glance(locked):
    first, second = locked.run("--locked"), locked.run("--locked")
    assert (first.code, first.ran) == (0, [])
    assert second.out.endswith("up to date: 8 steps, nothing to do\n")
    assert locked.run("--locked", "--only", "export").code == 0
    text = (locked.folder / "tiny.lock").read_text()
    again = locked("lock", "tiny.yaml")
    assert "tiny.lock is up to date" in again.out
    assert (locked.folder / "tiny.lock").read_text() == text
    assert locked("lock", "--check", "tiny.yaml").code == 0


@pytest.mark.slow
def test_a_real_build_is_locked_and_held_to_its_lock(tmp_path):
    project = make_project(tmp_path / "project")
    made = project("lock", "tiny.yaml")
    assert "wrote tiny.lock: 8 steps, 2 sources, 0 files" in made.out, made.err
    assert {"torch", "onnx", "onnxruntime-gpu"} & set(
        yaml.safe_load((project.folder / "tiny.lock").read_text())["packages"]
    )
    first, second = project.run("--locked"), project.run("--locked")
    assert (first.code, first.ran) == (0, [])
    assert second.out.endswith("up to date: 8 steps, nothing to do\n")
    project.edit("models/helper.py", "ReLU", "GELU")
    refused = project.run("--locked")
    assert (refused.code, refused.ran) == (4, [])


def test_another_checkout_is_held_to_the_same_lock(locked, tmp_path):
    there = tmp_path / "elsewhere" / "deeper"
    shutil.copytree(locked.folder, there, ignore=shutil.ignore_patterns("artifacts"))
    locked.folder = there
    built = locked.run("--locked")
    assert built.code == 0, built.out + built.err
    assert len(built.ran) == 8
    assert locked("lock", "--check", "tiny.yaml").code == 0


EDITS = {
    "a source": (
        "models/helper.py",
        "ReLU",
        "GELU",
        "source models/helper.py",
        "--update models/helper.py",
    ),
    "an option": (
        "tiny.yaml",
        "min_samples: 3",
        "min_samples: 4",
        "recipe tiny.sections.benchmark.min_samples: 3 -> 4",
        "--update recipe",
    ),
    "a variant": ("tiny.yaml", "fp32: none", "fp32: none, half: fp16", "tiny.variants.half", ""),
}


@pytest.mark.parametrize("case", EDITS, ids=lambda name: name.replace(" ", "-"))
def test_a_locked_run_refuses_an_edit_before_anything_runs(locked, case):
    file, old, new, named, fix = EDITS[case]
    locked.edit(file, old, new)
    done = locked.run("--locked")
    assert (done.code, done.ran) == (4, [])
    assert named in done.err
    assert f"onnxbuild lock tiny.yaml {fix}".strip() in done.err
    assert locked("lock", "--check", "tiny.yaml").code == 4


def test_a_file_that_the_lock_does_not_name_is_undeclared(locked):
    locked.write("models/helper/__init__.py", "def activation():\n    return 'ReLU'\n")
    done = locked.run("--locked")
    assert done.code == 5
    named = "the step used source models/helper/__init__.py, which is not in the lock"
    assert named in done.out
    assert "--update models/helper/__init__.py" in done.out


def test_other_bytes_from_the_same_inputs_are_refused_and_not_delivered(project, tmp_path):
    project.edit("models/helper.py", '"ReLU"', '"ReLU" * len(__file__)')
    assert project("lock", "tiny.yaml").code == 0
    there = tmp_path / "elsewhere" / "deeper"
    shutil.copytree(project.folder, there, ignore=shutil.ignore_patterns("artifacts"))
    project.folder = there
    done = project.run("--locked")
    assert done.code == 4
    assert "the output 'model' is" in done.out
    assert "onnxbuild reproduce tiny.yaml" in done.out
    assert not (there / "artifacts/out/tiny/fp32").exists()


def test_an_update_takes_what_it_names_and_nothing_else(locked):
    locked.edit("models/helper.py", "ReLU", "GELU")
    locked.edit("tiny.yaml", "max: 8", "max: 9")
    before = (locked.folder / "tiny.lock").read_text()
    refused = locked("lock", "tiny.yaml", "--update", "models/helper.py")
    assert refused.code == 4
    assert "recipe tiny.axes[0].max: 8 -> 9: not among what may change" in refused.err
    assert (locked.folder / "tiny.lock").read_text() == before

    unknown = locked("lock", "tiny.yaml", "--update", "models/helpr.py")
    assert unknown.code == 2
    assert "did you mean 'models/helper.py'?" in unknown.err

    both = locked("lock", "tiny.yaml", "--update", "models/helper.py", "--update", "recipe")
    assert both.code == 0, both.err
    assert "source models/helper.py" in both.out
    assert "model of tiny:export" in both.out
    assert locked.run("--locked").code == 0


def test_a_missing_or_broken_lock_says_what_to_type(project):
    missing = project.run("--locked")
    assert missing.code == 2
    assert "there is no lock for tiny.yaml" in missing.err
    assert "onnxbuild lock tiny.yaml" in missing.err
    for text in ("", "format: 99\n", "- a\n- b\n", "{", "format: 1\nrecipe: x\n"):
        project.write("tiny.lock", text)
        broken = project.run("--locked")
        assert broken.code == 2
        assert "tiny.lock: this is not a lock of onnxbuild" in broken.err


def test_measurements_stay_until_they_are_asked_for(locked):
    lock = yaml.safe_load((locked.folder / "tiny.lock").read_text())
    shutil.rmtree(locked.folder / "artifacts")
    assert locked("lock", "--check", "tiny.yaml").code == 0
    assert "up to date" in locked("lock", "tiny.yaml").out
    kept = yaml.safe_load((locked.folder / "tiny.lock").read_text())
    assert kept == lock
    renewed = locked("lock", "tiny.yaml", "--update", "measurements")
    assert "renewed tiny.lock" in renewed.out
    now = yaml.safe_load((locked.folder / "tiny.lock").read_text())
    assert now.pop("measurements") != lock.pop("measurements")
    assert now == lock


def test_recipes_that_share_steps_have_locks_of_their_own(locked):
    text = (locked.folder / "tiny.yaml").read_text().replace("name: tiny", "name: twin")
    locked.write("twin.yaml", text)
    both = locked("lock", "twin.yaml", "tiny.yaml")
    assert both.code == 0, both.err
    assert "wrote twin.lock" in both.out
    assert "tiny.lock is up to date" in both.out
    for order in (("twin.yaml", "tiny.yaml"), ("tiny.yaml", "twin.yaml"), ("twin.yaml",)):
        assert locked("run", *order, "--locked").code == 0
    locked.edit("twin.yaml", "max: 8", "max: 9")
    done = locked("run", "tiny.yaml", "twin.yaml", "--locked")
    assert done.code == 4
    assert "recipe twin.axes[0].max" in done.err


@pytest.mark.slow
def test_files_outside_the_project_are_locked_by_content_for_each_recipe(tmp_path):
    project = make_project(tmp_path / "project")
    for name, content in (("a", "1"), ("b", "2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "seed.txt").write_text(content)
    project.edit(
        "models/tiny.py", "torch.manual_seed(0)", "torch.manual_seed(int(open(seed).read()))"
    )
    project.edit("models/tiny.py", "def load(width=8)", "def load(seed, width=8)")
    project.edit(
        "tiny.yaml",
        "model: {entrypoint: models/tiny.py:load}",
        f"matrix: {{which: [a, b]}}\n"
        f'model: {{entrypoint: models/tiny.py:load, files: ["{tmp_path}/{{{{ which }}}}/*"], '
        f'args: {{seed: "{tmp_path}/{{{{ which }}}}/seed.txt"}}}}',
    )
    assert project("lock", "tiny.yaml").code == 0
    lock = yaml.safe_load((project.folder / "tiny.lock").read_text())
    assert sorted(lock["files"]) == [
        "<tiny@which=a model 1>/seed.txt",
        "<tiny@which=b model 1>/seed.txt",
    ]
    assert project.run("--locked").code == 0
    (tmp_path / "b" / "seed.txt").write_text("3")
    done = project.run("--locked")
    assert done.code == 4
    assert "file <tiny@which=b model 1>/seed.txt" in done.err


def test_an_output_that_nothing_explains_is_not_taken_with_another_change(project):
    """Its key is as it was: only time, or chance, can have made it another."""
    project.edit("models/helper.py", '"ReLU"', "__import__('os').urandom(8).hex()")
    made = project("lock", "tiny.yaml")
    assert made.code == 0, made.out
    before = (project.folder / "tiny.lock").read_text()
    shutil.rmtree(project.folder / "artifacts")
    project.edit("tiny.yaml", "min_samples: 3", "min_samples: 4")
    refused = project("lock", "tiny.yaml", "--update", "recipe")
    assert refused.code == 4, refused.out
    assert "model of tiny:export: " in refused.err
    assert "though its step's inputs are unchanged: not among what may change" in refused.err
    assert "--update tiny:export" in refused.err
    assert "to find out why: onnxbuild reproduce tiny.yaml" in refused.err
    assert (project.folder / "tiny.lock").read_text() == before


def test_an_output_that_was_taken_out_of_the_lock_is_missed(locked):
    lock = yaml.safe_load((locked.folder / "tiny.lock").read_text())
    lock["steps"]["tiny:export"]["outputs"] = {}
    locked.write("tiny.lock", yaml.safe_dump(lock))
    done = locked.run("--locked")
    assert done.code == 4
    assert "FAILED  tiny:export: the output 'config' is not in the lock" in done.out


def test_another_programs_lock_is_not_overwritten(project):
    (project.folder / "tiny.yaml").rename(project.folder / "poetry.yaml")
    project.write("poetry.lock", "# @generated by Poetry\n[[package]]\n")
    done = project("lock", "poetry.yaml")
    assert (done.code, done.ran) == (2, [])
    assert "poetry.lock: this file was not made by onnxbuild, and would be overwritten" in done.err
    assert (project.folder / "poetry.lock").read_text().endswith("[[package]]\n")


def test_two_recipes_do_not_share_a_lock(locked):
    locked.write("tiny.yml", (locked.folder / "tiny.yaml").read_text())
    for recipes in (["tiny.yml"], ["tiny.yml", "tiny.yaml"]):
        done = locked("lock", *recipes)
        assert (done.code, done.ran) == (2, []), done.out
        assert "would share one lock" in done.err
    assert locked("lock", "tiny.yaml").code == 0


def test_models_are_replaced_only_once_the_lock_is_written(locked, monkeypatch):
    def refuse(path, _content, _folder):
        error = OSError(errno.EROFS, "Read-only file system")
        raise store_error(error, path) from error

    model = locked.folder / "artifacts/out/tiny/fp32/model.onnx"
    before, lock = model.read_bytes(), (locked.folder / "tiny.lock").read_bytes()
    locked.edit("models/helper.py", "ReLU", "GELU")
    with monkeypatch.context() as patched:
        patched.setattr("onnxbuild.relock.write_atomically", refuse)
        done = locked("lock", "tiny.yaml")
    assert done.code == 1
    assert f"can't write {locked.folder / 'tiny.lock'}: Read-only file system" in done.err
    assert "fix: make its folder writable" in done.err
    assert model.read_bytes() == before
    assert (locked.folder / "tiny.lock").read_bytes() == lock
    assert locked("lock", "tiny.yaml").code == 0
    assert model.read_bytes() != before


def test_a_value_that_was_set_is_written_into_the_recipe_before_the_lock_is_renewed(locked):
    run = locked("run", "tiny.yaml", "--locked", "--set", "opset=17")
    assert run.code == 4
    assert (
        "fix: leave out --set; or write the values into tiny.yaml, then: onnxbuild lock tiny.yaml --update recipe"
    ) in run.err
    check = locked("lock", "tiny.yaml", "--check", "--set", "opset=17", "--store", "other store")
    assert check.code == 4
    assert (
        "fix: write the values of --set into tiny.yaml, then: onnxbuild lock tiny.yaml --store 'other store'"
    ) in check.err
    assert "leave out" not in check.err
