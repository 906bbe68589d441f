"""The memo never says up to date when anything that the run looked at has changed."""

import os
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onnxbuild.adapters import memo
from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache, identity
from onnxbuild.adapters.store import memos
from onnxbuild.adapters.toolchain.distributions import Distributions
from onnxbuild.adapters.toolchain.fingerprints import DiskFingerprints

REQUEST = "r" * 64
SUMMARY = {"environment": {"TOKEN": "one", "UNSET": None}, "steps": 3}
ENVIRONMENT = {"TOKEN": "one", "PATH": "/bin"}


class Run:
    """What a run would look at: files of every sort, on a real disk."""

    def __init__(self, folder):
        self.folder = folder
        self.store = folder / "artifacts"
        self.files = {
            "recipe": folder / "recipes/tiny.yaml",
            "source": folder / "recipes/models/tiny.py",
            "declared file": folder / "data/weights.bin",
            "RECORD": folder / "site/tool-1.0.dist-info/RECORD",
            "blob": self.store / "cas/sha256/ab/abcd",
            "record": self.store / "ac/cd/cdef.json",
            "view": self.store / "out/tiny/fp32/model.onnx",
        }
        for path in self.files.values():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"as it was")
        self.folders = [folder / "recipes/models", folder / "site"]
        self.gone = folder / "recipes/models/optional.py"
        time.sleep(0.03)
        self.started_ns = time.time_ns()
        self.index = Index(folder / "index.db")
        self.stats = StatCache(self.index)

    def look(self):
        for path in (*self.files.values(), *self.folders, self.gone):
            self.stats.look(str(path))

    def remember(self):
        return memo.remember(self.store, REQUEST, SUMMARY, self.stats, started_ns=self.started_ns)

    def recall(self, environment=None):
        return memo.recall(self.store, REQUEST, environment or ENVIRONMENT)


@pytest.fixture
def run(tmp_path):
    made = Run(tmp_path)
    made.look()
    assert made.remember()
    return made


FILES = ("recipe", "source", "declared file", "RECORD", "blob", "record", "view")


def test_nothing_changed_is_up_to_date(run):
    assert run.recall() == SUMMARY
    assert run.recall() == SUMMARY


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "change", ["same size", "append", "delete", "replace", "time set back", "link"]
)
def test_any_change_of_any_file_is_noticed(run, name, change):
    path = run.files[name]
    before = path.stat()
    if change == "same size":
        path.write_bytes(b"as it WAS")
    elif change == "append":
        path.write_bytes(path.read_bytes() + b".")
    elif change == "delete":
        path.unlink()
    elif change == "replace":
        other = run.folder / "other"
        other.write_bytes(b"as it was")
        other.replace(path)
    elif change == "link":
        other = run.folder / "other"
        other.write_bytes(b"as it WAS")
        path.unlink()
        path.symlink_to(other)
    else:
        path.write_bytes(b"as it WAS")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert run.recall() is None


CODE = "import torch\n\n\ndef load():\n    return torch.nn.Linear(4, 1)\n"


@pytest.fixture
def read(tmp_path):
    """A run that asked for digests alone: of a source's syntax tree, of a file's bytes, of a folder's modules."""
    made = Run(tmp_path)
    made.files["source"].write_text(CODE)
    time.sleep(0.03)
    made.started_ns = time.time_ns()
    project = DiskFingerprints(tmp_path, made.stats, Distributions(made.stats, ()))
    assert project.source("recipes/models/tiny.py")
    made.stats.digest(str(made.files["source"]), "defines load ", lambda path: "yes")
    assert project.file("data/weights.bin")
    assert project.listing("recipes/models", ["tiny"]).found == ("tiny.py",)
    assert made.remember()
    return made


def test_an_edited_comment_is_up_to_date_and_the_memo_knows_the_edited_file(read):
    read.files["source"].write_text(CODE + "# a comment\n")
    time.sleep(0.03)
    assert read.recall() == SUMMARY
    _, paths, identities = memos.read_memo(read.store, REQUEST)
    assert list(identities) == list(map(identity, paths))


def test_a_comment_that_was_saved_in_this_clock_tick_is_read_again_next_time(read):
    read.files["source"].write_text(CODE + "# a comment\n")
    assert read.recall() == SUMMARY
    read.files["source"].write_text(CODE + "# other code\nx = 1\n")
    assert read.recall() is None


@pytest.mark.parametrize(
    "text",
    [CODE.replace("1)", "2)"), CODE + "x = 1\n", "", "def load(:\n", CODE.replace("load", "lead")],
)
def test_edited_code_is_noticed(read, text):
    read.files["source"].write_text(text)
    assert read.recall() is None
    read.files["source"].unlink()
    assert read.recall() is None


def test_a_file_that_is_written_again_with_the_same_bytes_is_up_to_date(read):
    read.files["declared file"].write_bytes(b"as it was")
    assert read.recall() == SUMMARY
    read.files["declared file"].write_bytes(b"as it WAS")
    assert read.recall() is None


def test_a_folder_counts_with_what_can_be_imported_from_it(read):
    (read.folder / "recipes/models/notes.txt").write_text("")
    assert read.recall() == SUMMARY
    (read.folder / "recipes/models/torch").mkdir()
    assert read.recall() is None


@pytest.mark.parametrize("name", ["source", "declared file"])
def test_a_file_of_which_more_was_asked_than_its_content_counts_with_every_change(read, name):
    read.stats.look(str(read.files[name]))
    assert read.remember()
    read.files[name].write_bytes(read.files[name].read_bytes())
    assert read.recall() is None


@pytest.mark.parametrize(
    ("count", "found"), [(memo.CHANGED_MAX, SUMMARY), (memo.CHANGED_MAX + 1, None)]
)
def test_too_many_changes_are_decided_by_the_whole(read, count, found):
    files = [read.folder / f"data/{n}.bin" for n in range(count)]
    for file in files:
        file.write_bytes(b"same")
    time.sleep(0.03)
    read.started_ns = time.time_ns()
    for file in files:
        read.stats.digest(str(file))
    assert read.remember()
    for file in files:
        file.write_bytes(b"same")
    assert read.recall() == found


def test_a_new_file_in_a_folder_that_was_listed_is_noticed(run):
    for folder in run.folders:
        assert run.recall() is not None or folder != run.folders[0]
        (folder / "new.py").write_text("")
        assert run.recall() is None


def test_a_file_that_was_looked_for_in_vain_is_noticed_when_it_comes(run):
    run.gone.write_text("")
    assert run.recall() is None


def test_a_variable_that_a_recipe_passes_on_counts(run):
    assert run.recall({"PATH": "/bin", "TOKEN": "two"}) is None


def test_a_file_that_changed_while_the_run_went_on_makes_no_memo(tmp_path):
    made = Run(tmp_path)
    made.look()
    made.files["source"].write_bytes(b"as it WAS")
    made.look()
    assert not made.remember()


def test_a_file_written_just_before_the_run_makes_no_memo(tmp_path):
    made = Run(tmp_path)
    made.files["source"].write_bytes(b"as it WAS")
    made.started_ns = time.time_ns()
    made.look()
    assert not made.remember()


def test_what_the_run_itself_wrote_in_its_store_may_be_young_and_restless(tmp_path):
    made = Run(tmp_path)
    made.look()
    made.files["view"].write_bytes(b"delivered")
    made.look()
    assert made.remember()
    assert made.recall() is not None


def test_an_edit_of_a_view_after_it_was_laid_is_seen_even_before_the_memo_is_kept(tmp_path):
    made = Run(tmp_path)
    made.look()
    made.files["view"].write_bytes(b"an edit by a person")
    assert made.remember()
    assert made.recall() is None


def test_a_project_file_below_a_store_that_holds_the_project_is_no_file_of_the_store(tmp_path):
    made = Run(tmp_path)
    made.store = tmp_path
    made.look()
    made.files["source"].write_bytes(b"as it WAS")
    made.look()
    assert not made.remember()


def test_a_memo_that_is_damaged_says_nothing(run):
    file = run.store / "memo" / REQUEST
    sound = file.read_bytes()
    for content in (b"", sound[:-1], sound + b"x", sound.replace(b"1", b"2", 1), b"7\n[]"):
        file.write_bytes(content)
        assert run.recall() is None
        assert memo.seen_paths(run.store, REQUEST) == []
    file.write_bytes(sound)
    assert run.recall() == SUMMARY


def test_the_last_used_memos_stay(run):
    folder = run.store / "memo"
    for number in range(memos.MOST + 1):
        (folder / f"{number}").touch()
        os.utime(folder / f"{number}", (number, number))
    memos.drop_old(run.store)
    assert len(list(folder.iterdir())) == memos.MOST
    assert run.recall() == SUMMARY
    memos.drop_old(run.store, before_s=float(memos.MOST))
    assert sorted(path.name for path in folder.iterdir()) == sorted([REQUEST, str(memos.MOST)])
    assert memos.used_s(run.store, str(memos.MOST)) == memos.MOST
    assert memos.used_s(run.store, "0") == 0.0


def test_every_part_of_a_request_is_in_its_key(tmp_path):
    base = (["a.yaml"], ["int8"], {"opset": "18"}, [tmp_path], tmp_path / "artifacts")
    others = [
        (["b.yaml"], *base[1:]),
        (["a.yaml", "a.yaml"], *base[1:]),
        (base[0], ["int8", "fp32"], *base[2:]),
        (*base[:2], {"opset": "17"}, *base[3:]),
        (*base[:3], [tmp_path / "deeper"], base[4]),
        (*base[:4], tmp_path / "elsewhere"),
    ]
    keys = [memo.request_key(*each) for each in (base, *others)]
    assert len(set(keys)) == len(keys)
    assert memo.request_key(*base) == keys[0]


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(changes=st.lists(st.tuples(st.sampled_from(FILES), st.binary(min_size=1, max_size=9))))
def test_up_to_date_means_that_no_content_differs(tmp_path_factory, changes):
    made = Run(tmp_path_factory.mktemp("memo"))
    made.look()
    assert made.remember()
    before = {name: path.read_bytes() for name, path in made.files.items()}
    for name, content in changes:
        made.files[name].write_bytes(content)
    differs = any(path.read_bytes() != before[name] for name, path in made.files.items())
    if differs:
        assert made.recall() is None
    if not changes:
        assert made.recall() == SUMMARY
