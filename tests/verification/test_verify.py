"""`onnxbuild verify` on a sound release: looked at, run again, built again."""

import re
import shutil

import pytest

from onnxbuild.core.errors import EXIT_GATE
from onnxbuild.release_format.checksums import check_sums
from onnxbuild.release_format.released import read_release
from onnxbuild.verification.replay import verify_run
from tests.cli.conftest import Project
from tests.fakes.heard import Heard
from tests.terminal import Terminal
from tests.verification.conftest import edit_json, release_of, sum_again

pytestmark = pytest.mark.slow


UNPROVEN = (
    "consistent: tiny 1.0; its signature was not checked (--key PUBLIC.pem), so whoever made it may have "
    "written all of it"
)


@pytest.mark.smoke
def test_a_release_is_verified_as_folder_and_as_archive(released, tmp_path):
    for path in ("dist/tiny-1.0", "dist/tiny-1.0.tar"):
        for key in ("team.pub.pem", "team.pub"):
            done = released("verify", path, "--key", key)
            assert done.code == 0, done.out
            assert f"ok      signature: made with the key {key}" in done.out
        assert done.out.endswith("verified: tiny 1.0\n")
    alone = Project(tmp_path / "elsewhere")  # nothing but the release is needed
    shutil.copytree(release_of(released), alone.folder / "it")
    there = alone("verify", "it", "--run")
    assert there.code == 0, there.out
    assert "skipped signature: present, not checked; to check it: --key PUBLIC.pem" in there.out
    assert "ok      fp32 on cpu: 4 golden points within tolerance" in there.out
    assert there.out.splitlines()[-1] == UNPROVEN


def test_a_provider_that_nobody_knows_is_refused_before_anything_is_checked(released):
    done = released("verify", "dist/tiny-1.0", "--run", "--provider", "cup")
    assert (done.code, done.out) == (2, "")
    assert "there is no provider 'cup'; expected one of cpu, " in done.err
    assert "fix: did you mean 'cpu'?" in done.err


@pytest.mark.always
def test_a_model_out_of_its_tolerance_fails_the_replay(released):
    folder = release_of(released)
    edit_json(
        folder / "variants/fp32/manifest.json",
        lambda m: m["validation"]["cpu"]["tolerances"].update(atol=0.0, rtol=0.0),
    )
    sum_again(folder)
    heard = Heard()
    (checked,) = verify_run(read_release(check_sums(folder)), events=[heard])
    assert checked.exit_code == EXIT_GATE
    reports = [(each.step, each.done, each.total, each.unit, each.note) for each in heard.events]
    assert reports[0] == ("golden outputs", 0, 1, "runs", "fp32")
    assert reports[-1][:4] == ("golden outputs", 1, 1, "runs")
    assert "elements differ by more than 0 + 0 |b|" in checked.faults[0]
    none_here = released("verify", "dist/tiny-1.0.tar", "--run", "--provider", "tensorrt")
    assert none_here.code != 0
    assert "tensorrt" in none_here.out + none_here.err


@pytest.mark.always
def test_a_rebuild_gives_the_same_bytes_or_says_where_it_parts(released):
    nowhere = released("verify", "dist/tiny-1.0", "--rebuild")
    assert nowhere.code == 2, nowhere.out
    assert "tiny.yaml is in no commit of the project here" in nowhere.err
    named = nowhere.err.partition("name it: ")[2].split()
    same = released("verify", "dist/tiny-1.0", "--rebuild", *named)
    assert same.code == 0, same.out
    assert "ok      recipe: tiny.yaml, which is in no commit" in same.out
    assert "ok      rebuilt: 7 steps from nothing, every output as released" in same.out
    assert same.out.endswith("verified: tiny 1.0\n")
    released.edit("models/helper.py", "ReLU", "GELU")
    other = released("verify", "dist/tiny-1.0", "--rebuild", *named)
    assert other.code == 4
    assert "not all as locked: source models/helper.py" in other.out
    assert "FAILED  rebuilt: 'model' of tiny:export is" in other.out
    away = Project(released.folder.parent)("verify", "project/dist/tiny-1.0", "--rebuild")
    assert away.code == 2
    assert "there is no tiny.yaml in the project here" in away.err


def test_golden_inputs_that_run_have_a_bar_on_a_terminal(released):
    terminal = Terminal(("verify", "dist/tiny-1.0", "--run"), released.folder)
    try:
        assert terminal.end() == 0, terminal.all
    finally:
        terminal.close()
    assert re.search(r"golden outputs +[\d.]+ s ─{16} 0 of 1 run$", terminal.all, re.MULTILINE)
    lines = terminal.all.splitlines()
    assert [line for line in lines if line.startswith("ok      fp32 on cpu: 4 golden points")]
    assert " ".join(line.strip() for line in lines[-2:]) == UNPROVEN  # wrapped at 80 columns
