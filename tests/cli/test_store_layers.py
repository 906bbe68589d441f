"""A private store above one that is only read; and one store that two users share."""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.cli.conftest import make_project

LAYERS = ("--store", "own", "--store", "shared")


def state_of(folder):
    """All that a write changes: names, owners, modes, times, sizes."""
    found = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        seen = path.lstat()
        found[str(path)] = (
            seen.st_mode, seen.st_uid, seen.st_nlink, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_size,
        )  # fmt: skip
    return found


def remark_of(done):
    """The only line that a run prints about the store below."""
    (line,) = [each for each in (done.out + done.err).splitlines() if "the store below" in each]
    return line


@pytest.fixture
def filled(cheap):
    assert cheap.run("--store", "shared").code == 0
    return cheap


def test_a_hit_in_the_store_below_is_copied_and_nothing_is_written_there(filled):
    before = state_of(filled.folder / "shared")
    first = filled.run(*LAYERS)
    assert (first.code, first.ran) == (0, [])
    assert f"results came from {filled.folder / 'shared'} (" in first.out + first.err
    assert state_of(filled.folder / "shared") == before
    shutil.rmtree(filled.folder / "shared")
    again = filled("run", "--store", "own", "--", "tiny.yaml")
    assert (again.code, again.ran) == (0, [])
    assert (filled.folder / "own/out/tiny/fp32/model.onnx").is_file()


def test_planning_looks_below_and_copies_nothing(filled):
    planned = filled("plan", "tiny.yaml", *LAYERS)
    assert planned.code == 0
    assert {line.split()[0] for line in planned.out.splitlines()[:-1]} == {"cached"}
    assert not (filled.folder / "own").exists()


def test_what_is_built_goes_into_the_own_store_alone(filled):
    before = state_of(filled.folder / "shared")
    filled.edit("models/tiny.py", "width=8", "width=9")
    assert "export" in filled.run(*LAYERS).ran
    assert state_of(filled.folder / "shared") == before
    assert filled.run("--store", "own").ran == []


def test_the_layers_are_named_in_pyproject_or_by_a_variable(filled):
    filled.write("pyproject.toml", '[tool.onnxbuild]\nstore = ["own", "shared"]\n')
    assert filled.run().ran == []
    shown = filled("doctor").out
    assert f"store        {filled.folder / 'own'}, " in shown
    assert f"store below  {filled.folder / 'shared'}, only read\n" in shown
    both = os.pathsep.join(("other", "shared"))
    assert filled.run(env={"ONNXBUILD_STORE": both}).ran == []
    assert (filled.folder / "other/out/tiny/fp32/model.onnx").is_file()


def test_a_damaged_blob_below_is_a_miss_and_one_line(filled):
    for blob in (filled.folder / "shared/cas").rglob("*"):
        if blob.is_file():
            blob.chmod(0o644)
            blob.write_bytes(b"x" * blob.stat().st_size)
    before = state_of(filled.folder / "shared")
    found = filled.run(*LAYERS)
    assert found.code == 0
    assert "export" in found.ran
    assert "is damaged" in remark_of(found)
    assert state_of(filled.folder / "shared") == before


def test_a_store_below_that_is_not_there_is_one_line(cheap):
    found = cheap.run("--store", "own", "--store", "nowhere")
    assert found.code == 0
    assert "nowhere, was not used for all: there is no store in it" in remark_of(found)
    assert not (cheap.folder / "nowhere").exists()
    assert "is not used: there is no store in it" in cheap("doctor", "--store", "own:nowhere").out


def test_the_verbs_of_the_cache_tell_the_layers_apart(filled):
    assert filled.run(*LAYERS).code == 0
    held = json.loads(filled("cache", "stats", *LAYERS, "--json").out)
    (below,) = held["below"]
    assert below["store"] == str(filled.folder / "shared")
    assert below["results"] == held["results"] > 0
    assert "below        " in filled("cache", "stats", *LAYERS).out

    before = state_of(filled.folder / "shared")
    collected = filled("cache", "gc", *LAYERS, "--keep-days", "0", "--grace-hours", "0")
    assert f"the store below, {filled.folder / 'shared'}, is only read" in collected.out
    assert state_of(filled.folder / "shared") == before

    blob = next(path for path in (filled.folder / "shared/cas").rglob("*") if path.is_file())
    blob.chmod(0o644)
    blob.write_bytes(b"other")
    before = state_of(filled.folder / "shared")
    checked = filled("cache", "verify", "--repair", *LAYERS)
    assert checked.code == 1
    assert f"{filled.folder / 'shared'}/cas/sha256/" in checked.out
    assert "their owner repairs them" in checked.out
    assert state_of(filled.folder / "shared") == before
    assert filled("cache", "verify", "--store", "own").code == 0


def as_user(uid, gid, command, folder):
    """Run a command as another user of a group, who may read this installation, wherever it is, and write nothing more."""
    become = [
        "setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups",
        "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search",
    ]  # fmt: skip
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder / f"home-{uid}"),
        "ONNXBUILD_CACHE": str(folder / f"home-{uid}/cache"), "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    return subprocess.Popen(
        ["/bin/sh", "-c", 'umask 022; exec "$@"', "sh", *become, *command], cwd=folder, env=environment,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


GROUP, ALICE, BOB = 64_001, 64_002, 64_003
OUTSIDER = 65_534
TOOL = [sys.executable, "-m", "onnxbuild"]


@pytest.fixture
def users():
    """A folder that two users of a group and an outsider can enter."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can run commands as other users, with setpriv")
    folder = Path(tempfile.mkdtemp(prefix="onnxbuild-users-"))
    folder.chmod(0o755)
    for uid in (ALICE, BOB, OUTSIDER):
        home = folder / f"home-{uid}"
        home.mkdir()
        os.chown(home, uid, GROUP if uid != OUTSIDER else OUTSIDER)
        make_project(home / "project")
        for path in [home / "project", *(home / "project").rglob("*")]:
            os.chown(path, uid, -1)
    yield folder
    shutil.rmtree(folder)


def run_as(users, uid, *arguments):
    """Run the command in a user's own project."""
    home = users / f"home-{uid}" / "project"
    command = ["/bin/sh", "-c", 'cd "$0" && exec "$@"', str(home), *TOOL, *arguments]
    with as_user(uid, GROUP if uid != OUTSIDER else OUTSIDER, command, users) as running:
        out, err = running.communicate(timeout=120)
    return subprocess.CompletedProcess(command, running.returncode, out, err)


@pytest.mark.slow
def test_two_users_of_a_group_share_one_store(users):
    store = users / "store"
    store.mkdir()
    os.chown(store, ALICE, GROUP)
    store.chmod(0o2775)
    first = run_as(users, ALICE, "run", "tiny.yaml", "--only", "export", "--store", str(store))
    assert first.returncode == 0, first.stderr
    second = run_as(users, BOB, "run", "tiny.yaml", "--only", "export", "--store", str(store))
    assert second.returncode == 0, second.stderr
    assert "0 built, 1 cached" in second.stdout
    edited = users / f"home-{BOB}" / "project/models/tiny.py"
    edited.write_text(edited.read_text().replace("width=8", "width=9"))
    built = run_as(users, BOB, "run", "tiny.yaml", "--store", str(store))
    assert built.returncode == 0, built.stderr
    back = run_as(users, ALICE, "run", "tiny.yaml", "--store", str(store))
    assert back.returncode == 0, back.stderr
    for path in store.rglob("*"):
        seen = path.lstat()
        assert seen.st_gid == GROUP, path
        if path.is_dir():
            assert stat.S_IMODE(seen.st_mode) & 0o2070 == 0o2070, path
    collected = run_as(
        users,
        ALICE,
        "cache",
        "gc",
        "--store",
        str(store),
        "--keep-days",
        "0",
        "--grace-hours",
        "0",
    )
    assert collected.returncode == 0, collected.stderr


@pytest.mark.slow
def test_users_lock_each_other_out_of_the_same_step(users):
    store = users / "store"
    store.mkdir()
    os.chown(store, ALICE, GROUP)
    store.chmod(0o2775)
    made = run_as(users, ALICE, "run", "tiny.yaml", "--only", "export", "--store", str(store))
    assert made.returncode == 0, made.stderr
    hold = (
        "import sys; from pathlib import Path; from onnxbuild.adapters.disk.locks import try_lock\n"
        "lock = try_lock(Path(sys.argv[1]), shared=True); print(lock is not None, flush=True)\n"
        "sys.stdin.read()"
    )
    holder = as_user(BOB, GROUP, [sys.executable, "-c", hold, str(store / "locks/store")], users)
    assert holder.stdout is not None
    assert holder.stdin is not None
    assert holder.stdout.readline() == "True\n"
    refused = run_as(users, ALICE, "cache", "gc", "--store", str(store))
    holder.communicate("")
    assert refused.returncode != 0
    assert run_as(users, ALICE, "cache", "gc", "--store", str(store)).returncode == 0


@pytest.mark.slow
def test_an_outsider_uses_a_store_that_only_others_may_write(users):
    shared = users / "shared"
    shared.mkdir()
    os.chown(shared, ALICE, GROUP)
    shared.chmod(0o2775)
    made = run_as(users, ALICE, "run", "tiny.yaml", "--store", str(shared))
    assert made.returncode == 0, made.stderr
    before = state_of(shared)
    found = run_as(users, OUTSIDER, "run", "tiny.yaml", "--store", "own", "--store", str(shared))
    assert found.returncode == 0, found.stderr
    assert f"came from {shared}" in found.stdout + found.stderr
    assert " 0 built" in found.stdout
    assert state_of(shared) == before
