"""Packages in a release: run again, and one that was swapped, cut or replaced is found."""

import json
import shutil

import pytest

from onnxbuild.cli.release import with_tag
from tests.cli.conftest import QUICK, RECIPE, Project, make_project
from tests.verification.conftest import give_keys, key_of, look_at, release, release_of
from tests.verification.forger import Forged

pytestmark = pytest.mark.slow

PACKAGES = """\
packages: {wheel: {version: 1.0.0}, triton: {ensemble: true}}
processing: {variants: [fp32], postprocess: [{softmax: {}}]}
"""
NAMES = [
    "fp32-pipeline-triton", "fp32-pipeline-wheel", "fp32-triton", "fp32-wheel", "other-triton", "other-wheel",
]  # fmt: skip


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    made = make_project(tmp_path_factory.mktemp("packages") / "project")
    recipe = RECIPE.replace("{fp32: none}", "{fp32: none, other: fp16}")
    made.write("tiny.yaml", f"{recipe}{QUICK}{PACKAGES}")
    give_keys(made)
    locked = made("lock", "tiny.yaml")
    assert locked.code == 0, locked.out + locked.err
    release(made)
    return made


@pytest.fixture
def project(once, tmp_path):
    return Project(shutil.copytree(once.folder, tmp_path / "project"))


def test_a_release_holds_packages_and_runs_those_that_no_server_has_to(project):
    folder = release_of(project)
    about = json.loads((folder / "release.json").read_text())
    assert sorted(about["packages"]) == NAMES
    assert about["packages"]["fp32-wheel"] == {
        "recipe": "tiny",
        "of": "fp32",
        "variant": "fp32",
        "format": "wheel",
        "about": "a Python wheel with the model, `load()` and its own test",
        "folder": "packages/fp32-wheel",
        "step": "tiny:fp32-wheel/package",
        "output": "bundle",
    }
    assert "| `packages/fp32-wheel/` | fp32 | a Python wheel" in (folder / "README.md").read_text()
    bill = json.loads((folder / "bom.cdx.json").read_text())
    refs = {each["ref"]: each for each in bill["dependencies"]}
    assert refs["package:fp32-wheel"]["dependsOn"] == ["variant:fp32"]
    done = look_at(folder, *key_of(project), "--run", "--trust-programs")
    assert done.code == 0, done.out + done.err
    assert f"ok      packages: {', '.join(NAMES)}: complete" in done.out
    assert "ok      fp32-wheel: 4 golden points within tolerance" in done.out
    assert "skipped fp32-triton: its own server or program runs it" in done.out
    done = look_at(folder, *key_of(project), "--run")
    assert done.code == 0
    assert "skipped fp32-wheel: a package is a program: with --trust-programs" in done.out


@pytest.mark.parametrize("form", ["wheel", "triton"])
def test_another_models_package_with_a_forged_lock_is_found(project, form):
    folder = release_of(project)
    model = "model.onnx" if form == "triton" else "tiny_other-1.0.0-py3-none-any.whl"
    place = folder / f"packages/fp32-{form}"
    if form == "wheel":
        shutil.copy(folder / f"packages/other-wheel/{model}", place / model)
        (place / "tiny_fp32-1.0.0-py3-none-any.whl").unlink()
    else:
        shutil.copy(
            folder / f"packages/other-triton/tiny-other/1/{model}", place / f"tiny-fp32/1/{model}"
        )
    Forged(folder).again_with_packages(f"fp32-{form}")
    done = look_at(folder)
    assert done.code == 4
    assert (
        f"packages/fp32-{form} does not hold the model that variants/fp32/manifest.json names"
        in done.out
    )


def test_an_ensemble_holds_its_variants_model_and_no_other(project):
    folder = release_of(project)
    place = folder / "packages/fp32-pipeline-triton"
    own = place / "tiny-fp32-pipeline-model/1/model.onnx"
    assert own.read_bytes() == (folder / "variants/fp32/model.onnx").read_bytes()
    shutil.copy(folder / "variants/other/model.onnx", own)
    Forged(folder).again_with_packages("fp32-pipeline-triton")
    done = look_at(folder)
    assert done.code == 4
    assert (
        "packages/fp32-pipeline-triton does not hold the model that variants/fp32/manifest.json names"
        in done.out
    )


def test_a_recipe_may_leave_its_packages_out_and_a_release_is_pushed_at_once(project):
    project.edit("tiny.yaml", "packages: {wheel", "release: {packages: false}\npackages: {wheel")
    (project.folder / "tiny.lock").unlink()
    assert project("lock", "tiny.yaml").code == 0
    again = ("release", "tiny.yaml", "--version", "1.1+a", "--allow-dirty")
    pushed = project(*again, "--push", "oci:images/team/tiny:1")
    assert pushed.code == 0, pushed.out + pushed.err
    assert "pushed oci:images/team/tiny@sha256:" in pushed.out
    assert not (project.folder / "dist/tiny-1.1+a/packages").exists()
    assert look_at(project.folder / "dist/tiny-1.1+a").code == 0


@pytest.mark.parametrize(
    ("push", "tag"),
    [
        ("localhost:5000/team/tiny", "localhost:5000/team/tiny:1.0-a"),
        ("localhost:5000/team/tiny:2", "localhost:5000/team/tiny:2"),
    ],
)
def test_a_push_without_a_tag_takes_the_version(push, tag):
    assert with_tag(push, "1.0+a") == tag
