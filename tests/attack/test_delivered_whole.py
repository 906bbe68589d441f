"""out/RECIPE/VARIANT is one whole build at every moment: kill -9, full disks, readers.

The delivery runs in a child whose system calls ptrace(2) counts (`traced`), so that every moment is
tried. What is found is checked by SHA256SUMS, as whoever deploys the folder would.
"""

import contextlib
import errno
import hashlib
import itertools
import os
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.store.disk_store import DiskStore
from onnxbuild.adapters.store.disk_views import DiskViews, drop_replaced
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.errors import StoreError
from onnxbuild.core.graph import Deliverable, OutputRef
from onnxbuild.release.publish import publish
from tests.adapters.store.test_delivery import files as files_below
from tests.attack import traced

VIEW = Deliverable("tiny", "fp32", ((OutputRef("p", "bundle"), ""),))
MINE = {"notes of mine.txt": b"mine", "tuning/kept.json": b"{}"}
SUMS = "SHA256SUMS"
_NOTHING: Mapping[str, int] = MappingProxyType({})


def bundle(number: int) -> dict[str, bytes]:
    """A model with its weights in a file of their own; some files are as in the other build."""
    files = {
        "model.onnx": b"graph %d" % number,
        "model.onnx.data": b"weights %d" % number * 1000,
        "tokenizer/vocab.txt": b"the same",
        f"tokenizer/only-in-{number}.txt": b"another",
    }
    sums = [f"{hashlib.sha256(text).hexdigest()}  {name}\n" for name, text in files.items()]
    return {**files, SUMS: "".join(sums).encode()}


class World:
    """A store in which two builds are, and one of them is delivered."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "out/tiny/fp32"
        store, _ = self._open()
        store.prepare()
        self.builds = [self._ingest(store, number) for number in (0, 1)]
        self.lay(0)
        for name, text in MINE.items():
            (self.folder / name).parent.mkdir(exist_ok=True)
            (self.folder / name).write_bytes(text)

    def _open(self) -> tuple[DiskStore, DiskViews]:
        stats = StatCache(Index(self.root / "index.db"))
        store = DiskStore(self.root, stats)
        return store, DiskViews(store.root, store, stats)

    def _ingest(self, store: DiskStore, number: int) -> Artifact:
        made = self.root.parent / f"made-{number}"
        for name, text in bundle(number).items():
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).write_bytes(text)
        return store.ingest(made, "bundle")

    def lay(self, number: int) -> tuple[str, ...]:
        _, views = self._open()
        return views.lay(VIEW, {("p", "bundle"): self.builds[number]})

    def try_to_lay(self, number: int) -> int:
        """Its exit code, as a program."""
        try:
            self.lay(number)
        except StoreError as error:
            return 1 if "no space left on the disk" in error.what else 2
        return 0

    def found(self) -> int:
        """Which build is there, checked by its sums, and nothing of the other one.

        Files of somebody else come over with it; folders of theirs are moved at once after it, or by
        the next run.
        """
        files = files_below(self.folder)
        number = _whole(files)
        assert files["notes of mine.txt"] == MINE["notes of mine.txt"]
        assert files.keys() - MINE.keys() == bundle(number).keys()
        return number

    def mend(self) -> None:
        """What the next run does."""
        self.lay(1)
        assert files_below(self.folder) == bundle(1) | MINE

    def reset(self) -> None:
        """The first build again; nothing is left of how it came to be."""
        self.lay(0)
        drop_replaced(self.root)
        assert self.found() == 0
        hidden = [path for path in (self.root / "out/.laid").rglob("*") if path.is_file()]
        assert hidden == [self.root / "out/.laid/tiny/fp32.json"]


def _whole(files: dict[str, bytes]) -> int:
    """The number of the build; its sums fit all that they name."""
    for line in files[SUMS].decode().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256(files[name]).hexdigest() == digest, name
    return int(files["model.onnx"].split()[1])


@pytest.fixture
def world(scratch: Path) -> World:
    return World(scratch / "store")


def _killed_at_each_change(world: World, refuse: Mapping[str, int] = _NOTHING) -> Iterator[int]:
    """Deliver again and again, each time killed one change later, until it comes to its end.

    With a call that is refused, from that call on: before it, all is as it is without.
    """
    first = 1
    for name in refuse:
        first = traced.run(lambda: world.try_to_lay(1)).calls.index(name)
        world.reset()
    for moment in itertools.count(first):
        ended = traced.run(lambda: world.try_to_lay(1), kill_at=moment, refuse=refuse)
        if ended.code is not None:
            assert (ended.code, world.found()) == (0, 1)
            break
        yield moment
        world.mend()
        world.reset()
    assert moment > first + 10


@pytest.mark.always
def test_killed_at_any_of_its_file_operations_it_leaves_one_whole_build(world):
    found = [world.found() for _ in _killed_at_each_change(world)]
    assert found == sorted(found), "the old one, then the new one"
    assert set(found) == {0, 1}


@pytest.mark.parametrize("lasting", [True, False], ids=["full from then on", "full for a moment"])
def test_with_the_disk_full_at_any_of_its_file_operations_it_leaves_one_whole_build(
    world, lasting
):
    codes = []
    for moment in itertools.count(1):
        until = 0 if lasting else moment
        ended = traced.run(lambda: world.try_to_lay(1), full_from=moment, full_until=until)
        if len(ended.calls) < moment:
            break
        assert ended.code in {0, 1}, moment
        assert world.found() == 1 or ended.code == 1, moment
        codes.append(ended.code)
        world.mend()
        world.reset()
    assert codes.count(1) > 10


def test_where_two_names_can_not_be_exchanged_a_kill_leaves_one_whole_build_or_none(world):
    found = [
        world.found() if world.folder.exists() else None
        for _ in _killed_at_each_change(world, {"renameat2": errno.EINVAL})
    ]
    assert found.count(None) == 1, "between the two renames"
    found.remove(None)
    assert found == sorted(found)
    assert set(found) == {0, 1}


def test_a_first_delivery_is_there_whole_or_not_at_all(scratch):
    world = World(scratch / "store")
    for moment in range(1, 200):
        for path in sorted(world.folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        world.folder.rmdir()
        ended = traced.run(lambda: world.try_to_lay(1), kill_at=moment)
        if world.folder.exists():
            assert files_below(world.folder) == bundle(1)
        if ended.code is not None:
            break
        world.lay(1)
        assert files_below(world.folder) == bundle(1)
    assert ended.code == 0
    assert moment > 20


# --- releases -------------------------------------------------------------------------------------


def _release(releases: Path, number: int) -> int:
    """Replace whatever release is there; the exit code, as a program."""
    try:
        publish(releases, "tiny-1.0", bundle(number), epoch_s=0, force=True)
    except StoreError as error:
        return 1 if "no space left on the disk" in error.what else 2
    return 0


@pytest.mark.parametrize("fate", ["killed", "full"])
def test_a_release_is_one_whole_release_at_every_moment(scratch, fate):
    releases = scratch / "dist"
    archives = []
    for number in (1, 0):
        assert _release(releases, number) == 0
        archives.insert(0, (releases / "tiny-1.0.tar").read_bytes())
    for moment in itertools.count(1):
        ended = traced.run(
            lambda: _release(releases, 1),
            kill_at=moment if fate == "killed" else 0,
            full_from=moment if fate == "full" else 0,
        )
        files = files_below(releases / "tiny-1.0")
        assert files == bundle(_whole(files)), moment
        assert (releases / "tiny-1.0.tar").read_bytes() in archives, moment
        if ended.code == 0:
            break
        assert ended.code in {None, 1}, moment
        assert _release(releases, 0) == 0
        assert sorted(path.name for path in releases.iterdir()) == ["tiny-1.0", "tiny-1.0.tar"]
    assert moment > 20


# --- readers ------------------------------------------------------------------------------------


def _seen(folder: Path) -> dict[str, bytes]:
    """What a reader finds that has opened the folder once, as a program that works in it."""
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)

    def read(name: str) -> bytes:
        with os.fdopen(os.open(name, os.O_RDONLY, dir_fd=top), "rb") as file:
            return file.read()

    try:
        sums = read(SUMS)
        names = [line.split("  ")[1] for line in sums.decode().splitlines()]
        return {SUMS: sums, **{name: read(name) for name in names}}
    finally:
        os.close(top)


def test_a_reader_at_any_moment_finds_one_whole_build(world):
    ends = time.monotonic() + 1.5
    faults: list[str] = []
    seen: list[int] = []
    laid = 0

    def goes_on() -> bool:
        """For so long, and on a busy machine until each has done enough."""
        return time.monotonic() < ends or laid <= 10 or len(seen) <= 10 or set(seen) < {0, 1}

    def read() -> None:
        while goes_on() and not faults:
            try:
                seen.append(_whole(_seen(world.folder)))
            except (AssertionError, OSError, KeyError) as fault:
                faults.append(repr(fault))

    reader = threading.Thread(target=read)
    reader.start()
    while goes_on() and not faults:
        laid += 1
        world.lay(laid % 2)
    reader.join()
    assert faults == []
    assert set(seen) == {0, 1}


# --- a disk that is full ------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A filesystem in memory of a few pages, of its own mount namespace's making."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.system(f"mount -t tmpfs -o size=1m none {folder} 2>/dev/null"):
        pytest.skip("mounting a filesystem is not allowed here")
    yield folder
    assert os.system(f"umount -l {folder}") == 0


def _fill(ballast: Path, *, free_pages: int) -> None:
    """Take all space of a filesystem but so much."""
    page = os.sysconf("SC_PAGE_SIZE")
    with ballast.open("wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while True:
                file.write(bytes(page))
        file.truncate(file.tell() - free_pages * page)


def test_on_a_disk_with_any_number_of_free_pages_it_leaves_one_whole_build(small_disk):
    world = World(small_disk / "store")
    codes = []
    ballast = small_disk / "ballast"
    for pages in range(12):
        _fill(ballast, free_pages=pages)
        codes.append(world.try_to_lay(1))
        assert world.found() == 1 or codes[-1] == 1, pages
        ballast.unlink()
        world.mend()
        world.reset()
    assert codes == sorted(codes, reverse=True)
    assert set(codes) == {0, 1}
