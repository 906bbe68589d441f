"""A store as untrusted input: whatever it says, nothing outside of it is written, moved or removed.

Each test forges one thing as somebody with write access to the store could, checksums included, runs
what reads it, and compares every file outside of the store with what was there before.
"""

import json
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir, closing
from dataclasses import replace
from pathlib import Path

import pytest

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.store.garbage import collect_garbage
from onnxbuild.adapters.store.housekeeping import verify
from onnxbuild.adapters.store.usage import collect_stats, hit_rates
from onnxbuild.building.wiring import open_workspace
from onnxbuild.core.digest import canonical_json, tagged_sha256
from onnxbuild.core.errors import StoreError
from tests.attack import cheap, tiny
from tests.attack.cheap import Ended, Server
from tests.attack.conftest import MEMORY
from tests.cli.test_pipes_in_the_store import limited

STEPS = [cheap.step_of("a", sources=["m"]), cheap.step_of("b", "a")]
OTHERS = [*STEPS, cheap.step_of("c", "b")]
PATIENCE_S = 30

LEADING_OUT = (
    "../../../../outside/part/more.txt",
    "{outside}/part/more.txt",
    "..",
    "",
    "C:/more.txt",
    "nul\0.txt",
)


class World:
    """A built store, and a folder outside that holds what an attacker would like to change."""

    def __init__(self, root: Path, server: Server) -> None:
        self.root, self._server = root, server
        self.place = cheap.make(root / "place")
        self.store = self.place.store
        self.outside = root / "outside"
        for name in ("victim", "part/more.txt", "ab/victim", "victim.json"):
            (self.outside / name).parent.mkdir(parents=True, exist_ok=True)
            (self.outside / name).write_text(f"mine: {name}")
            os.utime(self.outside / name, (1, 1))
        (self.place.project / "m.py").write_text("x = 1\n")
        assert self.build().code == 0
        clean = replace(self.place, store=root / "clean")
        assert server.build(clean, OTHERS).code == 0
        self.right = tiny.delivered(clean.store)
        for folder in (self.store, self.outside):
            shutil.copytree(folder, root / f"spare {folder.name}")
        self.renew()

    def renew(self) -> None:
        """All as it was."""
        for folder in (self.store, self.outside):
            shutil.rmtree(folder)
            shutil.copytree(self.root / f"spare {folder.name}", folder)
        self.before = self._rest()

    def build(self, steps: list[dict[str, object]] = STEPS) -> Ended:
        """Build; whatever waits for ever is ended."""
        try:
            with limited(PATIENCE_S):
                return self._server.build(self.place, steps)
        except TimeoutError:
            self._server.kill()
            raise

    def collect(self) -> None:
        """All verbs that look after a store."""
        with (
            limited(PATIENCE_S),
            closing(open_workspace(self.place.project, self.store)) as opened,
        ):
            collect_stats(opened.disk, opened.index)
            hit_rates(self.store, 20)
            collect_garbage(opened.disk, opened.index, keep_days=0, grace_s=0, max_bytes=0)
            verify(opened.store, repair=True)

    def collect_or_refuse(self) -> None:
        """As `collect`; or one sentence that names what is in the way."""
        try:
            self.collect()
        except StoreError as error:
            assert str(self.store) in str(error)  # noqa: PT017 - it may also end well

    def check_set_aside(self, change: Callable[[dict[str, object]], None]) -> None:
        """Forge the first step's record: it is set aside, its step runs, and all is right after."""
        self._forge_record(change)
        ended = self.build()
        assert "a" in ended.ran
        self.check(ended=ended)

    def _forge_record(self, change: Callable[[dict[str, object]], None]) -> None:
        """Change the artifact in the first step's record; nothing else is remembered."""
        for path in (self.store / "ac").rglob("*.json"):
            body = json.loads(path.read_bytes())
            if not body["traces"][0]["observed"]["sources"]:
                continue  # the second step's
            change(body["traces"][0])
            del body["checksum"]
            body["checksum"] = tagged_sha256("record", body)
            path.chmod(0o644)
            path.write_bytes(canonical_json(body))
        (self.store / "index.db").unlink()
        shutil.rmtree(self.store / "memo")

    def check(self, *, ended: Ended) -> None:
        """It is right, and nothing outside is another."""
        assert (ended.code, ended.error) == (0, "")
        now = tiny.delivered(self.store)
        assert now.items() <= self.right.items()
        assert len(now) >= len(STEPS)
        self.check_outside()

    def check_outside(self) -> None:
        assert self._rest() == self.before

    def _rest(self) -> dict[str, tuple[object, ...]]:
        """Every file that is not in the store: its bytes, mode and time."""
        found = {}
        for path in [self.root, *self.root.rglob("*")]:
            if path == self.store or self.store in path.parents or path == self.store.parent:
                continue
            seen = path.lstat()
            content = path.read_bytes() if path.is_file() else sorted(map(str, path.iterdir()))
            if path != self.root:
                found[str(path)] = (content, seen.st_mode, seen.st_mtime_ns)
        return found


@pytest.fixture(scope="module")
def made(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    memory = MEMORY if os.access(MEMORY, os.W_OK) else tmp_path_factory.mktemp("made")
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield World(Path(folder), server)


@pytest.fixture
def world(made: World) -> World:
    made.renew()
    return made


# --- records ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LEADING_OUT)
def test_a_record_whose_files_lead_out_is_set_aside_and_its_step_runs(world, name):
    name = name.format(outside=world.outside)

    def forge(trace):
        trace["outputs"]["out"]["files"][0][0] = name

    world.check_set_aside(forge)
    assert [path.suffixes for path in (world.store / "quarantine").iterdir()]


@pytest.mark.parametrize("digest", ["../../../../outside/victim", "A" * 64, 5])
def test_a_record_whose_digests_are_none_is_set_aside_and_its_step_runs(world, digest):
    def forge(trace):
        trace["outputs"]["out"]["files"][0][1] = digest

    world.check_set_aside(forge)


@pytest.mark.parametrize(
    "files",
    [
        [["same", "0" * 64, 0], ["same", "1" * 64, 0]],
        [["part", "0" * 64, 0], ["part/more.txt", "0" * 64, 0]],
        [["a", "0" * 64, -1]],
        {"a": 1},
    ],
)
def test_a_record_that_no_build_can_write_is_set_aside_and_its_step_runs(world, files):
    def forge(trace):
        trace["outputs"]["out"]["files"] = files

    world.check_set_aside(forge)


# --- views --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LEADING_OUT)
def test_what_was_laid_is_removed_nowhere_else(world, name):
    state = world.store / "out/.laid/cheap/a.json"
    laid = json.loads(state.read_text())
    laid[name.format(outside=world.outside)] = "0" * 64
    state.write_text(json.dumps(laid))
    (world.store / "out/cheap/a/report.json").unlink()
    world.check(ended=world.build(OTHERS))


@pytest.mark.parametrize("said", ["[]", '{"a": 1}', "[" * 9999])
def test_a_list_of_laid_files_that_is_none_counts_as_not_there(world, said):
    (world.store / "out/.laid/cheap/a.json").write_text(said)
    (world.store / "out/cheap/a/report.json").unlink()
    world.check(ended=world.build())


@pytest.mark.parametrize(
    "names", [["../../outside/victim"], ["/outside"], [7], ["part/victim", "part"]], ids=str
)
def test_a_replacement_that_looks_unfinished_writes_nothing_outside(world, names):
    """Its folder `part` in the view is a link outside; in the staging folder it holds files to be moved."""
    staged = world.store / "out/.laid/cheap/a.staging/1"
    (staged / "tree/part").mkdir(parents=True)
    for name in ("victim", "more.txt", "new.txt"):
        (staged / "tree/part" / name).write_text("theirs")
    (staged / "old").symlink_to(world.outside)
    (staged / "names.json").write_text(json.dumps(names))
    view = world.store / "out/cheap/a"
    shutil.rmtree(view / "part")
    (view / "part").symlink_to(world.outside / "part")
    (view / "report.json").unlink()
    ended = world.build()
    assert ended.code in {0, 1}
    world.check_outside()
    world.collect_or_refuse()
    world.check_outside()


# --- links --------------------------------------------------------------------------------------

LINKS = (
    "out",
    "out/.laid",
    "out/.laid/cheap/a.json",
    "out/.laid/cheap/a.staging",
    "out/cheap/a",
    "out/cheap/a/part",
    "cas",
    "cas/sha256/*",
    "ac",
    "runs",
    "tmp",
    "quarantine",
    "pins",
    "locks",
    "index.db",
    "memo",
    "memo/*",
    "FORMAT",
)


@pytest.mark.parametrize("place", LINKS)
def test_a_link_in_the_store_leads_no_write_out(world, place):
    """To a folder outside, or a file where it is a file's name; then all that writes a store runs."""
    for path in sorted(world.store.glob(place)) or [world.store / place]:
        is_folder = path.is_dir() if os.path.lexists(path) else path.suffix == ""
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(world.outside if is_folder else world.outside / "victim")
    (world.place.project / "m.py").touch()
    world.before = world._rest()
    for steps in (OTHERS, STEPS):
        ended = world.build(steps)
        assert ended.code == 0 or str(world.store) in ended.error
        world.check_outside()
    world.collect_or_refuse()
    world.check_outside()


# --- the index, notes of runs, pins ------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON stat BEGIN DELETE FROM recipe; END",
        "DROP TABLE recipe; CREATE VIEW recipe AS SELECT 1 AS request",
    ],
)
def test_an_index_with_tables_of_somebody_else_is_made_anew(world, statement):
    index = Index(world.store / "index.db")
    index._connection.executescript(statement)
    index.close()
    world.check(ended=world.build())
    assert world.build().operations == cheap.OF_A_GLANCE, "what it knew is known again"


@pytest.mark.parametrize(
    "note",
    [
        {"request": "r", "exit_code": 0, "keys": ["../../../outside/victim", "nul\0"]},
        {"request": ["r"], "exit_code": {}, "keys": []},
        [],
    ],
    ids=str,
)
def test_notes_of_runs_have_nothing_outside_removed(world, note):
    folder = world.store / "runs/2026"
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(note))
    world.collect()
    world.check_outside()
    world.check(ended=world.build())


@pytest.mark.parametrize("reported", [{"name": "../../x", "keys": ["../../outside/victim"]}, 7])
def test_pins_have_nothing_outside_removed_or_kept(world, reported):
    (world.store / "pins").mkdir(exist_ok=True)
    (world.store / "pins/p.json").write_text(json.dumps(reported))
    world.collect_or_refuse()
    world.check_outside()


# --- what waits for ever --------------------------------------------------------------------------


def _a_socket(path: Path) -> None:
    with chdir(path.parent), socket.socket(socket.AF_UNIX) as made:  # a socket's path is short
        made.bind(path.name)


def _a_folder(path: Path) -> None:
    path.mkdir()
    (path / "something").touch()


@pytest.mark.parametrize("make", [os.mkfifo, _a_socket, _a_folder])
def test_no_file_of_a_store_can_be_replaced_by_one_that_a_run_waits_for(world, make):
    names = [path.relative_to(world.store) for path in world.store.rglob("*") if path.is_file()]
    for name in [*names, Path("pins/p.json"), Path("runs/x"), Path("index.db-journal")]:
        world.renew()
        path = world.store / name
        path.unlink(missing_ok=True)
        path.parent.mkdir(exist_ok=True)
        make(path)
        ended = world.build(OTHERS)
        if ended.code:
            assert str(path) in ended.error, ended.error
            assert f"fix: remove {path}" in ended.error or "fix: make it a file" in ended.error
        else:
            world.check(ended=ended)
        world.collect_or_refuse()
        world.check_outside()
