"""What people find below out/: whole, put back when it is touched, and theirs where it is theirs."""

import json
import os
import stat

import pytest

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.store.disk_store import DiskStore
from onnxbuild.adapters.store.disk_views import DiskViews, drop_replaced
from onnxbuild.core.errors import StoreError
from onnxbuild.core.graph import Deliverable, OutputRef
from tests.adapters.test_store_contract import outputs_of

VIEW = Deliverable(
    "tiny", "fp32", ((OutputRef("p", "bundle"), ""), (OutputRef("b", "report"), "b.json"))
)


class World:
    def __init__(self, tmp_path):
        self.tmp_path = tmp_path
        stats = StatCache(Index(tmp_path / "index.db"))
        self.store = DiskStore(tmp_path / "store", stats)
        self.store.prepare()
        self.views = DiskViews(self.store.root, self.store, stats)
        self.folder = self.store.root / "out/tiny/fp32"

    def lay(self, view=VIEW, *, report="fast", **files):
        files = files or {"model.onnx": "weights", "extra/notes.txt": "notes"}
        bundle = {name.replace("/", "__"): text for name, text in files.items()}
        artifacts = {
            ("p", "bundle"): self.store.ingest(outputs_of(self.tmp_path, **bundle), "bundle"),
            ("b", "report"): self.store.ingest(
                outputs_of(self.tmp_path, **{"report.json": report}), "report"
            ),
        }
        return self.views.lay(view, artifacts)

    def content(self):
        return {
            path.relative_to(self.folder).as_posix(): path.read_text()
            for path in self.folder.rglob("*")
            if path.is_file()
        }


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


WHOLE = {"model.onnx": "weights", "extra/notes.txt": "notes", "b.json": "fast"}


def test_a_view_holds_its_bundle_and_the_reports_under_their_names(world):
    assert world.lay() == ()
    assert world.content() == WHOLE
    assert list((world.store.root / "tmp").iterdir()) == []


def test_a_deleted_file_is_put_back_and_said(world):
    world.lay()
    (world.folder / "model.onnx").unlink()
    assert world.lay() == (f"{world.folder / 'model.onnx'} was deleted; put back",)
    assert world.content() == WHOLE


def test_an_edited_file_is_put_back_and_said(world):
    world.lay()
    (world.folder / "model.onnx").write_text("WEIGHTS")
    assert world.lay() == (f"{world.folder / 'model.onnx'} was changed; put back",)
    assert world.content() == WHOLE


def test_a_file_that_a_build_no_longer_lays_is_removed(world):
    world.lay()
    assert world.lay(**{"model.onnx": "weights"}) == ()
    assert world.content() == {"model.onnx": "weights", "b.json": "fast"}


def test_a_file_that_nobody_laid_is_left_alone(world):
    world.lay()
    (world.folder / "my notes.txt").write_text("mine")
    world.lay(**{"model.onnx": "better"})
    assert world.content()["my notes.txt"] == "mine"


def test_a_file_of_a_person_under_a_name_that_is_now_laid_is_replaced(world):
    world.folder.mkdir(parents=True)
    (world.folder / "model.onnx").write_text("mine")
    assert world.lay() == ()
    assert world.content() == WHOLE


def test_links_folders_and_rights_of_a_person_are_kept(world):
    world.lay()
    mine = world.folder / "runs of mine"
    (mine / "deep").mkdir(parents=True)
    (mine / "deep/notes.txt").write_text("mine")
    (world.folder / "extra/mine.txt").write_text("mine")
    (world.folder / "latest").symlink_to("model.onnx")
    (world.folder / "nowhere").symlink_to("/nowhere")
    os.mkfifo(world.folder / "pipe")
    mine.chmod(0o555)
    world.folder.chmod(0o750)
    inode = mine.stat().st_ino
    assert world.lay(**{"model.onnx": "better"}) == ()
    assert world.content() == {
        "model.onnx": "better",
        "b.json": "fast",
        "extra/mine.txt": "mine",
        "latest": "better",
        "runs of mine/deep/notes.txt": "mine",
    }
    assert str((world.folder / "nowhere").readlink()) == "/nowhere"
    assert stat.S_ISFIFO((world.folder / "pipe").lstat().st_mode)
    assert (mine.stat().st_ino, stat.S_IMODE(mine.stat().st_mode)) == (inode, 0o555)
    assert stat.S_IMODE(world.folder.stat().st_mode) == 0o750
    mine.chmod(0o755)


def test_what_a_program_writes_into_the_replaced_folder_comes_over(world):
    world.lay()
    inside = os.open(world.folder, os.O_RDONLY | os.O_DIRECTORY)
    world.lay(**{"model.onnx": "better"})
    with os.fdopen(os.open("late.txt", os.O_WRONLY | os.O_CREAT, dir_fd=inside), "w") as file:
        file.write("written by whoever was in the folder")
    os.close(inside)
    drop_replaced(world.store.root)
    assert world.content()["late.txt"] == "written by whoever was in the folder"
    assert not (world.store.root / "out/.laid/tiny/fp32.staging").exists()


def test_the_replaced_folder_stays_for_a_minute_and_is_gone_after_it(world):
    world.lay()
    world.lay(**{"model.onnx": "better"})
    (staged,) = (world.store.root / "out/.laid/tiny/fp32.staging").iterdir()
    assert (staged / "tree/model.onnx").read_text() == "weights"
    assert world.lay(**{"model.onnx": "better"}) == ()
    assert staged.exists()
    os.utime(staged / "replaced", (0, 0))
    assert world.lay(**{"model.onnx": "better"}) == ()
    assert not staged.parent.exists()


def test_a_folder_where_a_file_belongs_is_one_clear_error(world):
    (world.folder / "model.onnx" / "deep").mkdir(parents=True)
    with pytest.raises(StoreError) as caught:
        world.lay()
    assert caught.value.what == (
        f"{world.folder / 'model.onnx'} is a folder, where a file belongs"
    )
    assert caught.value.fix == f"remove {world.folder / 'model.onnx'}"
    assert list((world.store.root / "tmp").iterdir()) == []


def test_a_damaged_blob_is_never_delivered(world):
    world.lay()
    for blob in (world.store.root / "cas").rglob("*"):
        if blob.is_file() and blob.read_text() == "weights":
            blob.chmod(0o644)
            blob.write_text("weighTs")
    (world.folder / "model.onnx").unlink()
    artifact = world.store.ingest(outputs_of(world.tmp_path, other="x"), "bundle")
    assert artifact.files
    (first, *_) = world.folder.rglob("*.json")
    assert first.name == "b.json"
    bundle = {("p", "bundle"): _recorded(world)}
    with pytest.raises(StoreError, match=r"a blob of model\.onnx is damaged in the store"):
        world.views.lay(Deliverable("tiny", "fp32", VIEW.parts[:1]), bundle)
    assert not (world.folder / "model.onnx").exists()
    assert list((world.store.root / "tmp").iterdir()) == []


def _recorded(world):
    """The bundle as it was ingested, without looking at its blobs again."""
    fresh = World(world.tmp_path / "other")
    return fresh.store.ingest(
        outputs_of(fresh.tmp_path, **{"model.onnx": "weights", "extra__notes.txt": "notes"}),
        "bundle",
    )


def test_what_was_laid_is_unknown_if_its_note_is_damaged_and_then_nothing_is_removed(world):
    world.lay()
    (note,) = (world.store.root / "out/.laid").rglob("*.json")
    assert set(json.loads(note.read_text())) == set(WHOLE)
    note.write_text("{")
    world.lay(**{"model.onnx": "weights"})
    assert world.content() == WHOLE
