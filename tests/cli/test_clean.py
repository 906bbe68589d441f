"""Whose the folders below out/ are: what is left over is named and removed, and names don't clash unseen."""

import json
import shutil

import pytest

from onnxbuild.reporting.gather import last_run
from tests.cli.conftest import QUICK, RECIPE, CheapProject

TWO = RECIPE.replace("{fp32: none}", "{fp32: none, half: fp16}") + QUICK


def left(text: str) -> list[str]:
    return [line for line in text.splitlines() if "left over" in line]


@pytest.fixture
def built(cheap: CheapProject) -> CheapProject:
    """Of two recipes, one with two variants."""
    cheap.write("tiny.yaml", TWO)
    cheap.write("other.yaml", TWO.replace("name: tiny", "name: other"))
    assert cheap("run").code == 0
    return cheap


def test_a_removed_variant_is_named_at_the_end_of_a_run_and_clean_removes_it(built):
    built.edit("tiny.yaml", ", half: fp16", "")
    seen = built("run", "tiny.yaml")
    assert (seen.code, seen.err.splitlines()) == (
        0,
        [
            "left over: artifacts/out/tiny/half (tiny.yaml no longer has it); to remove: onnxbuild clean"
        ],
    )
    assert left(built("run", "tiny.yaml").err) == left(seen.err)  # up to date, and still there
    tried = built("clean", "--dry-run")
    assert tried.out.startswith("would remove artifacts/out/tiny/half: ")
    assert tried.out.endswith("B; tiny.yaml no longer has it\n")
    folder = built.folder / "artifacts/out/tiny/half"
    assert folder.is_dir()
    assert built("clean").out == tried.out.replace("would remove", "removed")
    assert not folder.exists()
    assert built("clean").out == "nothing is left over\n"
    assert left(built("run", "tiny.yaml").err) == []
    assert (built.folder / "artifacts/out/tiny/fp32/model.onnx").exists()


def test_a_removed_recipe_is_named_by_a_run_of_another_and_clean_removes_it(built):
    (built.folder / "other.yaml").unlink()
    seen = built("run", "tiny.yaml")
    assert left(seen.err)[0].startswith("left over: artifacts/out/other (other.yaml is gone); ")
    removed = built("clean").out.splitlines()
    assert [line.split(": ")[0] for line in removed] == [
        "removed artifacts/out/other/fp32",
        "removed artifacts/out/other/half",
    ]
    assert not (built.folder / "artifacts/out/other").exists()
    assert not (built.folder / "artifacts/out/.laid/other").exists()
    assert "other" not in json.loads(
        (built.folder / "artifacts/out/.laid/owners.json").read_text()
    )


def test_what_a_user_put_there_or_changed_is_kept_and_named(built):
    built.write("artifacts/out/tiny/half/notes/mine.txt", "mine")
    built.write("artifacts/out/tiny/half/model.onnx", "edited")
    built.edit("tiny.yaml", ", half: fp16", "")
    kept = [line for line in built("clean").out.splitlines() if line.startswith("  kept")]
    assert kept == [
        f"  kept artifacts/out/tiny/half/{name}: not made by onnxbuild, or changed since"
        for name in ("model.onnx", "notes")
    ]
    files = [
        path.relative_to(built.folder / "artifacts/out/tiny/half").as_posix()
        for path in (built.folder / "artifacts/out/tiny/half").rglob("*")
        if path.is_file()
    ]
    assert sorted(files) == ["model.onnx", "notes/mine.txt"]
    assert built("clean").out == "nothing is left over\n"


def test_a_recipe_that_was_renamed_or_moved_is_not_left_over_and_not_a_clash(built):
    (built.folder / "tiny.yaml").rename(built.folder / "small.yaml")
    assert built("clean").out == "nothing is left over\n"
    seen = built("run", "small.yaml")
    assert (seen.code, left(seen.err)) == (0, [])


def test_two_recipes_of_one_name_clash_even_when_they_run_apart(built):
    built.write("twin.yaml", TWO)
    seen = built("run", "twin.yaml")
    assert (seen.code, seen.err) == (
        2,
        (
            "error: twin.yaml:1:1: two recipes are named 'tiny': tiny.yaml and twin.yaml; "
            "artifacts/out/tiny is of the first\n"
            "  fix: write another `name:` in one of them, such as `name: twin`\n"
        ),
    )
    assert built("run", "tiny.yaml").code == 0
    built.edit("tiny.yaml", "name: tiny", "name: first")
    assert built("run", "twin.yaml").code == 0


def test_what_checkouts_that_share_a_store_say_of_their_last_runs_is_their_own(cheap, tmp_path):
    other = CheapProject(tmp_path / "checkout")
    shutil.copytree(cheap.folder, other.folder)
    other.edit("models/tiny.py", "width=8", "width=9")
    store = ("--store", str(tmp_path / "store"))

    def said(project):
        why = project("why", "tiny:export", *store).out
        log = json.loads(project("log", "tiny:export", *store, "--json").out)["path"]
        run = last_run(tmp_path / "store", project.folder, {"tiny:export"})
        return why, log, run.states

    assert cheap("run", "tiny.yaml", *store).code == 0
    own = said(cheap)
    assert own[0].endswith("it last ran because of:\n  never built here\n")
    assert other("run", "tiny.yaml", *store).code == 0
    assert "source models/tiny.py: " in said(other)[0]
    assert said(other)[1] != own[1]
    assert said(cheap) == own
    other.edit("models/tiny.py", "width=9", "width=8")
    assert other("run", "tiny.yaml", *store).code == 0
    assert said(other)[2] == {"tiny:export": "cached"}
    assert said(cheap) == own
    shutil.rmtree(other.folder)
    assert said(cheap) == own


def test_two_recipes_of_one_name_are_both_named_when_they_run_together(cheap):
    cheap.write("twin.yaml", RECIPE + QUICK)
    seen = cheap("run")
    assert (seen.code, seen.err) == (
        2,
        (
            "error: twin.yaml:1:1: two recipes are named 'tiny': tiny.yaml and twin.yaml\n"
            "  fix: write another `name:` in one of them\n"
        ),
    )


def test_what_was_built_with_a_setting_is_not_left_over_while_its_file_is_there(built):
    assert built("run", "tiny.yaml", "--set", "name=set").code == 0
    assert left(built("run", "tiny.yaml").err) == []
    assert built("clean").out == "nothing is left over\n"
    (built.folder / "tiny.yaml").unlink()
    assert "removed artifacts/out/set/fp32" in built("clean").out


def test_a_damaged_list_of_owners_is_written_anew(built):
    list_of_owners = built.folder / "artifacts/out/.laid/owners.json"
    before = list_of_owners.read_text()
    list_of_owners.write_text('{"../..": {"file": 3}}')
    assert built("clean").out == "nothing is left over\n"
    assert built("run", "--only", "fp32").code == 0
    assert built("run", "--set", "opset=17").code == 0
    built.edit("tiny.yaml", "batch: {min: 1, max: 8", "batch: {min: 1, max: 7")
    built.edit("other.yaml", "batch: {min: 1, max: 8", "batch: {min: 1, max: 7")
    assert built("run").code == 0
    assert list_of_owners.read_text() == before


def test_the_folders_that_a_run_replaced_are_gone_at_its_end(built):
    folder = built.folder / "artifacts/out/tiny/fp32"
    before = folder.stat().st_ino
    built.edit("tiny.yaml", "version: 1", "version: 1\nopset: 17")
    assert built("run", "tiny.yaml").code == 0
    assert folder.stat().st_ino != before
    assert list((built.folder / "artifacts/out/.laid").rglob("*.staging")) == []
