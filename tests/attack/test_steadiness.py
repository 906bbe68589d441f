"""Stores in odd places and states: moved, copied, full, half locked up, of another version.

A run is as right as ever, or it ends with one clear sentence; after what that says, it is right.
See tests/cli/test_bad_input.py for read-only ones.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from onnxbuild.core.digest import canonical_json, tagged_sha256
from tests.attack import tiny
from tests.attack.command import Command, Seen
from tests.attack.unprivileged import without_override
from tests.attack.warm import Warm

pytestmark = pytest.mark.slow
FULL = re.compile(
    r"(no space left on the disk|no inode left on the disk, .* are free\)) while writing .*\n"
    r"(  fix: )?free some space \(`onnxbuild cache gc` drops what nothing needs\), then run again"
)


@dataclass
class Made:
    """A project, what a clean build of it delivers, and a store that it was built in."""

    project: Path
    warm: Warm
    clean: dict[str, bytes]

    def run(self, store: Path | None = None) -> Seen:
        return self.warm.run(self.project / "tiny.yaml", store)

    def is_right(self, store: Path) -> bool:
        return tiny.delivered(store) == self.clean


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    project, warm = tiny.make(tmp_path_factory.mktemp("made") / "project"), Warm()
    assert warm.run(project / "tiny.yaml").ran == tiny.ALL
    yield Made(project, warm, tiny.delivered(project / "artifacts"))
    warm.close()


@pytest.fixture
def store(made, scratch) -> Path:
    """A copy of the built store."""
    return Path(shutil.copytree(made.project / "artifacts", scratch / "store"))


# --- other places -------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["mv", "cp -r"])
def test_a_store_that_was_moved_or_copied_has_all_that_it_had(made, store, command):
    other = store.parent / "deeper" / "other store"
    other.parent.mkdir()
    subprocess.run([*command.split(), store, other], check=True)
    for place in (other, store):
        if place.exists():
            seen = made.run(place)
            assert (seen.code, seen.ran, seen.err) == (0, frozenset(), "")
            assert made.is_right(place)


def test_projects_that_share_a_store_share_results_and_get_what_is_theirs(made, store, tmp_path):
    other = tiny.make(tmp_path / "other")
    helper = other / "models/helper.py"
    same = made.warm.run(other / "tiny.yaml", store)
    assert (same.code, same.ran) == (0, frozenset())
    helper.write_text(helper.read_text().replace("ReLU", "GELU"))
    assert made.warm.run(other / "tiny.yaml", store).ran == tiny.ALL
    assert not made.is_right(store)
    mine = made.run(store)
    assert (mine.code, mine.ran) == (0, frozenset())
    assert made.is_right(store)


@pytest.mark.parametrize("part", ["out", "cas"])
def test_a_part_on_another_filesystem_is_reported(made, scratch, part):
    store = scratch / "store"
    (store / part).mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "none", store / part]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a filesystem is not allowed here")
    seen = made.run(store)
    subprocess.run(["umount", store / part], check=True)
    assert seen.code == 1
    assert "it is on another filesystem than the rest of the store" in seen.texts
    assert made.run(store).code == 0
    assert made.is_right(store)


@pytest.mark.parametrize("part", ["out", "cas"])
def test_a_part_that_is_a_symbolic_link_is_reported_and_nothing_is_written_there(
    made, scratch, part
):
    store, elsewhere = scratch / "store", scratch / "elsewhere"
    store.mkdir()
    elsewhere.mkdir()
    (store / part).symlink_to(elsewhere)
    seen = made.run(store)
    said = (
        f"error: {store / part} is a symbolic link; "
        "a store writes nowhere but below its own folder\n"
        f"  fix: remove {store / part}, or choose another folder with --store FOLDER\n"
    )
    assert (seen.code, seen.err) == (1, said)
    assert list(elsewhere.iterdir()) == []
    (store / part).unlink()
    assert made.run(store).code == 0
    assert made.is_right(store)


# --- other versions -------------------------------------------------------------------------------


def _content(store: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in store.rglob("*") if path.is_file()}


def test_a_store_of_a_newer_format_is_left_alone_by_every_verb(made, store):
    (store / "FORMAT").write_text("2\n")
    (store / "index.db").unlink()
    shutil.rmtree(store / "memo")
    before = _content(store)
    reported = (
        f"error: the store {store} has format 2; this onnxbuild writes 1\n"
        "  fix: upgrade onnxbuild, or choose another folder with --store FOLDER\n"
    )
    seen = made.run(store)
    assert (seen.code, seen.events, seen.err) == (1, [], reported)
    command = Command(made.project, "tiny.yaml")
    for verb in (["plan", "tiny.yaml"], ["cache", "verify"], ["cache", "gc"]):
        assert command.call(*verb, "--store", str(store)) == (1, "", reported)
    assert _content(store) == before


def test_records_of_a_newer_version_are_not_read_and_not_taken_for_damage(made, store):
    for path in (store / "ac").rglob("*.json"):
        body = json.loads(path.read_bytes())
        del body["checksum"]
        body |= {"format": 99, "traces": "in another form"}
        path.write_bytes(canonical_json({**body, "checksum": tagged_sha256("record", body)}))
    seen = made.run(store)
    assert (seen.code, seen.ran, seen.err) == (0, tiny.ALL, "")
    assert made.is_right(store)
    assert list((store / "quarantine").iterdir()) == []


# --- no room, no permission -----------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Gives a folder on a filesystem of so many KiB and files; asked again, it grows or shrinks."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def of_size(kib: int, files: int = 1 << 13) -> Path:
        again = ["remount"] if os.path.ismount(folder) else []
        options = ",".join([*again, f"size={kib}k", f"nr_inodes={files}"])
        mount = ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)]
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"a filesystem can't be mounted here: {done.stderr.strip()}")
        return folder

    yield of_size
    if os.path.ismount(folder):
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.mark.parametrize("kib", [8, 64, 192, 320, 448])
def test_a_disk_that_is_full_at_any_moment_loses_nothing(made, disk, kib):
    store = disk(kib) / "store"
    seen = made.run(store)
    assert (seen.code, bool(FULL.search(seen.texts))) in {(1, True), (0, False)}, seen.texts
    assert tiny.delivered(store).items() <= made.clean.items()
    done = {event["step"].partition(":")[2] for event in seen.of("step_finished")}
    disk(1 << 13)
    again = made.run(store)
    assert again.code == 0, again.texts
    assert again.ran <= tiny.ALL - done
    assert made.is_right(store)


@pytest.mark.parametrize("files", [20, 38, 56])
def test_a_disk_that_takes_no_more_files_is_full_in_one_sentence(made, disk, files):
    store = disk(1 << 13, files) / "store"
    seen = made.run(store)
    assert (seen.code, bool(FULL.search(seen.texts))) in {(1, True), (0, False)}, seen.texts
    assert "Traceback" not in seen.texts
    assert "/fork_server.py" not in seen.texts
    assert tiny.delivered(store).items() <= made.clean.items()
    disk(1 << 13)
    assert made.run(store).code == 0
    assert made.is_right(store)


@pytest.mark.parametrize("part", ["", "ac", "cas/sha256", "out"])
def test_a_folder_that_may_not_be_written_is_reported(made, scratch, part):
    store = scratch / "store"
    assert made.run(store).code == 0
    for name in ("ac", "cas/sha256", "out"):
        shutil.rmtree(store / name)
        (store / name).mkdir()
    (store / "index.db").unlink()
    shutil.rmtree(store / "memo")
    (store / part).chmod(0o555)
    try:
        with without_override():
            seen = made.run(store)
    finally:
        (store / part).chmod(0o755)
    if part:
        assert seen.code == 1
        assert f"can't write {store / part}/" in seen.texts or f"{store / part}:" in seen.texts
        assert "fix: make the folder writable" in seen.texts
    assert made.run(store).code == 0
    assert made.is_right(store)
