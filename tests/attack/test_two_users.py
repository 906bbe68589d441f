"""One store for the users of a group, whatever their umasks; and locks where a filesystem has none.

The users are real ones: children of the test that gave up being root.
"""

import errno
import json
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from onnxbuild.adapters.disk import locks
from onnxbuild.adapters.store.garbage import collect_garbage
from onnxbuild.building.wiring import open_workspace
from onnxbuild.core.errors import StoreError
from tests.attack import cheap, tiny, traced

GROUP = 54321
STEPS = [cheap.step_of("a", sources=["m"]), cheap.step_of("b", "a")]


@dataclass(frozen=True)
class User:
    """Somebody with an id and a umask; only the group is common to two of them."""

    uid: int
    umask: int = 0o022

    def does(self, work: Callable[[], Any]) -> Any:
        """What work gives, in a process of this user's."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.setgroups([GROUP])
                os.setgid(self.uid)
                os.setuid(self.uid)
                os.umask(self.umask)
                with os.fdopen(write, "w") as answer:
                    json.dump(work(), answer)
                code = 0
            finally:
                os._exit(code)
        os.close(write)
        with os.fdopen(read) as answer:
            text = answer.read()
        os.waitpid(child, 0)
        return json.loads(text)

    def builds(self, place: cheap.Place, steps: Sequence[Mapping[str, Any]] = STEPS) -> int:
        reported = self.does(lambda: cheap._answer_of(place, steps, 0, (0, "", ""), (0, "")))
        assert "bug" not in reported, reported["bug"]
        assert reported["error"] == ""
        return int(reported["code"])


@pytest.fixture
def place(scratch: Path) -> cheap.Place:
    """A project that everybody reads, and the group's folder for the store."""
    if os.geteuid() != 0:
        pytest.skip("who is not root can't be two users")
    scratch.chmod(0o755)
    made = cheap.make(scratch / "place")
    made.store.mkdir()
    os.chown(made.store, -1, GROUP)
    made.store.chmod(0o2775)
    (made.project / "m.py").write_text("x = 1\n")
    return made


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_two_users_of_a_group_build_in_one_store_in_turn(place, umask):
    ada, ben = User(61001, umask), User(61002, umask)
    assert ada.builds(place) == 0
    mine = place.store / "out/cheap/a/notes.txt"
    ada.does(lambda: mine.write_text("Ada's"))
    for number, user in enumerate((ben, ada, ben), start=2):
        (place.project / "m.py").write_text(f"x = {number}\n")
        assert user.builds(place) == 0, user
        assert len(tiny.delivered(place.store)) == 5
        assert mine.read_text() == "Ada's"
    (place.store / "out/cheap/a/report.json").unlink()
    assert ben.builds(place) == 0
    for path in [place.store, *place.store.rglob("*")]:
        if path == mine or path.name == "replaced":  # a mark, of which the time alone is read
            continue
        seen = path.lstat()
        assert seen.st_gid == GROUP, path
        assert seen.st_mode & stat.S_IRGRP, path
        if path.is_dir():
            assert seen.st_mode & stat.S_IWGRP, path

    def collect() -> int:
        workspace = open_workspace(place.project, place.store)
        try:
            return collect_garbage(
                workspace.store, workspace.index, keep_days=0, grace_s=0
            ).records
        finally:
            workspace.close()

    assert ada.does(collect) > 0


def open_to_others(store: Path) -> list[Path]:
    """What more users than its owner may write."""
    mode = stat.S_IWGRP | stat.S_IWOTH
    return [path for path in store.rglob("*") if path.lstat().st_mode & mode]


def test_a_store_of_one_user_is_opened_to_nobody(place):
    ada = User(61001)
    os.chown(place.store, ada.uid, ada.uid)
    place.store.chmod(0o755)
    assert ada.builds(place) == 0
    assert not open_to_others(place.store)


def test_a_lock_that_may_only_be_read_can_be_taken(place):
    ada, ben = User(61001, 0o022), User(61002)
    (place.store / "locks").mkdir()
    path = place.store / "locks/of-ada"
    os.chown(path.parent, ada.uid, -1)

    def take() -> bool:
        lock = locks.try_lock(path)
        if lock is not None:
            lock.release()
        return lock is not None

    assert ada.does(take)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert ben.does(take)
    held = locks.try_lock(path)
    assert held is not None
    assert not ben.does(take)
    held.release()


def test_a_filesystem_without_locks_is_called_that(tmp_path):
    path = tmp_path / "locks/store"

    def take() -> int:
        locks.wait_lock(path).release()
        return 0

    def be_refused() -> int:
        with pytest.raises(StoreError) as caught:
            take()
        assert caught.value.what == (
            f"can't lock {path}: its filesystem has no locks (flock: {os.strerror(errno.ENOLCK)})"
        )
        assert caught.value.fix == "keep the store on a local disk: --store FOLDER"
        return 0

    assert traced.run(be_refused, refuse={"flock": errno.ENOLCK}).code == 0
    assert traced.run(take).code == 0
