"""The damage matrix: every file of a store, damaged in every way, one at a time.

The next run ends right, with every delivered byte as in a clean build, or it says in one sentence
what is wrong and what to do; and the run after that is right.
"""

import contextlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache, identity
from onnxbuild.adapters.store.disk_store import DiskStore
from onnxbuild.adapters.store.housekeeping import verify
from tests.attack import cheap, damages, tiny
from tests.attack.command import Seen
from tests.attack.unprivileged import without_override
from tests.attack.warm import Warm

FLIPS = 100  # of the index, of some 200 KiB
Bytes = dict[str, bytes]


@dataclass
class Built:
    """A project, its store, what a clean build of it delivers, and what runs it."""

    project: Path
    store: Path
    spare: Path
    clean: Bytes
    warm: Warm

    def run(self) -> Seen:
        return self.warm.run(self.project / "tiny.yaml", self.store)

    def delivered(self) -> Bytes:
        """The bytes of all that is below out/, but for what was measured."""
        return tiny.delivered(self.store)

    def renew(self) -> None:
        """Put the store back as it was, its identities known and old enough to be trusted."""
        shutil.rmtree(self.store)
        shutil.copytree(self.spare, self.store)
        time.sleep(0.025)
        assert self.run().ran == frozenset()
        _leave_traces(self.store)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, memory: Path) -> Iterator[Built]:
    project = tiny.make(tmp_path_factory.mktemp("damage") / "project")
    warm = Warm()
    made = Built(project, memory / "store", memory / "spare", {}, warm)
    first = made.run()
    assert (first.code, first.ran) == (0, tiny.ALL)
    made.clean = made.delivered()
    _leave_traces(made.store)
    shutil.copytree(made.store, made.spare)
    yield made
    warm.close()


def _leave_traces(store: Path) -> None:
    """What a damaged blob and a killed run leave behind."""
    (store / "quarantine" / "ab.1").write_bytes(b"bad")
    (store / "tmp" / "file").write_bytes(b"half")
    (store / "tmp" / "run" / "1").mkdir(parents=True, exist_ok=True)
    (store / "tmp" / "run" / "1" / "model.onnx").write_bytes(b"half")
    (store / "locks" / "run-gone").touch()


# --- what is in a store -----------------------------------------------------------------------

ROOMS: dict[str, str] = {
    "a blob": "cas/**/*",
    "a record": "ac/**/*",
    "the format": "FORMAT",
    "what git ignores": ".gitignore",
    "the index": "index.db*",
    "what is known at a glance": "memo/*",
    "a view": "out/tiny/**/*",
    "what was laid": "out/.laid/**/*",
    "events": "runs/*/events.jsonl",
    "a run's keys": "runs/*/run.json",
    "a run's reports": "runs/*/reports.json",
    "a step's log": "runs/*/logs/*",
    "a step's lock": "locks/key-*",
    "another lock": "locks/[!k]*",
    "a bad file": "quarantine/*",
    "a left file": "tmp/**/*",
}


def _files(store: Path, pattern: str) -> list[str]:
    found = [path for path in sorted(store.glob(pattern)) if path.is_file()]
    return [path.relative_to(store).as_posix() for path in found]


def test_every_file_of_a_store_has_its_row(built):
    named = [name for pattern in ROOMS.values() for name in _files(built.spare, pattern)]
    assert sorted(set(named)) == _files(built.spare, "**/*")
    assert all(_files(built.spare, pattern) for pattern in ROOMS.values())


# What a person has to mend, as the message says.
REMOVE = "error: {path} is a folder, where a file belongs\n  fix: remove {path}\n"
CANT_READ = "error: can't read {path}: "
CANT_WRITE = "error: can't write {path}: "
REFUSALS = {
    ("a step's lock", "unreadable"): CANT_WRITE + "Permission denied\n  fix: make ",
    ("a step's lock", "a folder"): REMOVE,
    ("another lock", "unreadable"): CANT_WRITE + "Permission denied\n  fix: make ",
    ("another lock", "a folder"): REMOVE,
    ("the format", "unreadable"): CANT_READ + "Permission denied\n  fix: make it a file that ",
    ("the format", "a folder"): CANT_READ + "Is a directory\n  fix: make it a file that ",
    ("a view", "a folder"): REMOVE,
    ("what was laid", "a folder"): REMOVE,
}


READ_BY_RUNS = {*ROOMS} - {
    "what git ignores",
    "events",
    "a run's keys",
    "a run's reports",
    "a step's log",
    "a bad file",
    "a left file",
}  # fmt: skip
"""Files of the others are for people, or are swept: of damage, what stops whoever reads or removes them."""
CASES = [
    pytest.param(room, each, marks=pytest.mark.always if each == "flipped in silence" else ())
    for room in ROOMS
    for each in damages.DAMAGES
    if room in READ_BY_RUNS or each in {"flipped in silence", "unreadable", "a folder"}
]


def _forget(store):
    """Remove what is known at a glance, so that the run decides on each step."""
    for path in (store / "memo").iterdir():
        path.unlink()


@pytest.mark.slow
@pytest.mark.parametrize(("room", "damage"), CASES)
def test_a_damaged_store_never_delivers_wrong_bytes(built, room, damage):
    built.renew()
    for name in _files(built.spare, ROOMS[room]):
        path = built.store / name
        if not path.is_file():  # an earlier run has swept it away
            built.renew()
        if room != "what is known at a glance":  # else it answers
            _forget(built.store)
        if room == "a step's lock":  # is taken when the step has to run
            key = path.name.removeprefix("key-")
            (built.store / "ac" / key[:2] / f"{key}.json").unlink()
        damages.damage(path, damage)
        with without_override() if damage == "unreadable" else contextlib.nullcontext():
            seen = built.run()
        refusal = None if path.name == "run-gone" else REFUSALS.get((room, damage))
        if refusal is None:
            assert (seen.code, seen.err) == (0, ""), name
        else:
            assert seen.code == 1
            assert seen.err.startswith(refusal.format(path=path)), seen.err
            now = built.delivered()
            assert {
                name: now[name] for name in built.clean.keys() & now.keys()
            }.items() <= built.clean.items()
            shutil.rmtree(path) if path.is_dir() else path.chmod(0o644)
            assert built.run().code == 0
        assert built.delivered() == built.clean, name
        again = built.run()
        assert (again.code, again.ran, again.err) == (0, frozenset(), ""), name
        assert built.delivered() == built.clean
        store = DiskStore(built.store, StatCache(Index(Path(":memory:"))))
        assert verify(store, repair=False)[1] == []
        if "benchmark" in seen.ran:  # what it gave before is nobody's now, and not looked at
            built.renew()


@pytest.mark.always
@pytest.mark.slow
@pytest.mark.parametrize("room", ["the index", "what is known at a glance"])
def test_no_flipped_bit_of_what_makes_runs_fast_changes_what_one_does(built, room):
    """Wherever it is: in a digest, in an identity, in a summary, in SQLite's own pages."""
    built.renew()
    (name,) = _files(built.store, ROOMS[room])
    path = built.store / name
    sound = path.read_bytes()
    for number, position in enumerate(range(0, len(sound), len(sound) // FLIPS)):
        content = bytearray(sound)
        content[position] ^= 1 << number % 8
        path.write_bytes(content)
        if room == "the index":  # else the memo answers
            _forget(built.store)
        seen = built.run()
        assert (seen.code, seen.ran, seen.err) == (0, frozenset(), ""), (position, seen.texts)
        assert built.delivered() == built.clean


@pytest.mark.always
def test_no_flipped_bit_of_a_record_is_believed(built):
    store = DiskStore(built.spare, StatCache(Index(Path(":memory:"))))
    for path in (built.spare / name for name in _files(built.spare, ROOMS["a record"])):
        assert store.read_record(path) != ()
        copy = built.spare.with_name(path.name)
        sound = path.read_bytes()
        for position in range(0, len(sound), 7):
            content = bytearray(sound)
            content[position] ^= 1 << position % 8
            copy.write_bytes(content)
            assert store.read_record(copy) == (), position
        copy.unlink()


def test_a_blob_that_is_damaged_while_a_build_runs_is_built_into_nothing(scratch, server):
    """Between the look at a blob and its use: before each file operation of the build."""
    place = cheap.make(scratch / "place")
    first = cheap.step_of("first")
    steps = [first, cheap.step_of("second", "first"), cheap.step_of("third", "second")]
    clean = replace(place, store=scratch / "clean")
    expected, right = server.build(clean, steps), tiny.delivered(clean.store)
    assert server.build(place, [first]).code == 0
    (blob, _) = sorted(_blobs(place.store), key=lambda path: -path.stat().st_size)
    cheap.copy(place.store, scratch / "spare")
    for at in range(1, expected.operations):
        cheap.copy(scratch / "spare", place.store)
        ended = server.build(place, steps, rot=(at, str(blob)))
        assert ended.code in {0, 1}
        assert ended.code or ended.outputs == expected.outputs, at
        assert tiny.delivered(place.store).items() <= right.items(), at
        after = server.build(place, steps)
        assert (after.code, after.outputs) == (0, expected.outputs), at
        assert tiny.delivered(place.store) == right, at


@pytest.mark.always
@pytest.mark.parametrize("lost", ["views", "records", "both"])
def test_rot_that_no_stat_shows_reaches_neither_outputs_nor_views(scratch, server, lost):
    """As on a disk that gives back other bits than it was given: the index holds them for sound."""
    place = cheap.make(scratch / "place")
    steps = [cheap.step_of("first"), cheap.step_of("second", "first", lossy=True)]
    expected = server.build(place, steps)
    right = tiny.delivered(place.store)
    cheap.copy(place.store, scratch / "spare")
    for blob in _blobs(place.store):
        cheap.copy(scratch / "spare", place.store)
        damages.damage(blob, "flipped")
        index = Index(place.store / "index.db")
        index.save_stats({str(blob): (identity(str(blob)), time.time_ns() + 10**10, blob.name)})
        index.close()
        if lost in {"views", "both"}:
            shutil.rmtree(place.store / "out/cheap")
        if lost in {"records", "both"}:
            for record in (place.store / "ac").rglob("*.json"):
                if blob.name not in record.read_text():
                    record.unlink()
        ended = server.build(place, steps)
        assert ended.code in {0, 1}
        assert tiny.delivered(place.store).items() <= right.items()
        if ended.code == 1:  # it was found too late to be rebuilt
            ended = server.build(place, steps)
        assert (ended.code, ended.outputs) == (0, expected.outputs)
        assert tiny.delivered(place.store) == right


def _blobs(store: Path) -> list[Path]:
    return [path for path in sorted((store / "cas").rglob("*")) if path.is_file()]
