"""Digests by stat identity: right even when a file changes within a clock tick."""

import hashlib
import os
import time

import pytest

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache, hash_file, identity, once, settled


def counting():
    calls: list[str] = []

    def make(path: str) -> str | None:
        calls.append(path)
        return hash_file(path)

    return calls, make


def settle(path):
    """Wait until the file's last change is safely in the past."""
    time.sleep(0.03)
    return str(path)


def test_an_unchanged_file_is_read_once_even_by_another_process(tmp_path):
    path = tmp_path / "f"
    path.write_text("one")
    settle(path)
    index = Index(tmp_path / "index.db")
    calls, make = counting()
    stats = StatCache(index)
    expected = hashlib.sha256(b"one").hexdigest()
    assert stats.digest(str(path), make=make) == expected
    assert stats.digest(str(path), make=make) == expected
    stats.save()
    assert StatCache(index).digest(str(path), make=make) == expected
    assert len(calls) == 1


def test_a_same_size_edit_is_seen_at_once(tmp_path):
    path = tmp_path / "f"
    index = Index(tmp_path / "index.db")
    for text in ("aaaa", "bbbb", "cccc", "dddd") * 5:
        path.write_text(text)
        stats = StatCache(index)
        assert stats.digest(str(path)) == hashlib.sha256(text.encode()).hexdigest()
        stats.save()


def test_an_edit_with_its_time_set_back_is_seen(tmp_path):
    path = tmp_path / "f"
    path.write_text("aaaa")
    settle(path)
    before = path.stat()
    index = Index(tmp_path / "index.db")
    stats = StatCache(index)
    stats.digest(str(path))
    stats.save()
    path.write_text("bbbb")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert StatCache(index).digest(str(path)) == hashlib.sha256(b"bbbb").hexdigest()


def test_an_index_that_is_no_database_is_made_anew(tmp_path):
    path = tmp_path / "index.db"
    path.write_bytes(b"not a database at all, but long enough to look like one" * 50)
    index = Index(path)
    index.save_stats({"p": ("1:2:3:4", 5, "d")})
    assert index.stat("p") == ("1:2:3:4", 5, "d")


@pytest.mark.parametrize(("after_ns", "trusted"), [(1_000_000, False), (30_000_000, True)])
def test_a_digest_taken_within_a_clock_tick_of_the_change_is_not_trusted(
    tmp_path, after_ns, trusted
):
    path = tmp_path / "f"
    path.write_text("one")
    now = identity(str(path))
    changed_ns = int(now.rpartition(":")[2])
    index = Index(tmp_path / "index.db")
    index.save_stats({str(path): (now, changed_ns + after_ns, "recorded")})
    assert (StatCache(index).digest(str(path)) == "recorded") is trusted


@pytest.mark.parametrize(
    ("changed_ns", "after_ns", "trusted"),
    [
        (5_000_000_001, 19_000_000, False),
        (4_000_000_000, 20_000_000, False),
        (4_000_000_000, -1_000_000_000, False),
    ],
)
def test_where_times_are_whole_seconds_a_change_settles_in_two(changed_ns, after_ns, trusted):
    """FAT counts in steps of 2 s, HFS+ and ext3 of 1 s: an equal time may hide another edit."""
    assert settled(f"1:2:3:{changed_ns}", changed_ns + after_ns) is trusted


def test_what_this_program_wrote_itself_is_trusted_at_once(tmp_path):
    path = tmp_path / "own"
    path.write_text("one")
    stats = StatCache(Index(tmp_path / "index.db"))
    stats.note_own(str(path), "its digest")
    assert stats.digest(str(path)) == "its digest"


def test_a_record_is_read_once_for_many_indexes_and_again_when_it_changes(tmp_path):
    path = tmp_path / "RECORD"
    path.write_text("one")
    calls, make = counting()
    read = once(make)
    settle(path)
    for number in range(3):
        found = StatCache(Index(tmp_path / f"{number}.db")).digest(str(path), make=read)
        assert found == hashlib.sha256(b"one").hexdigest()
    assert len(calls) == 1
    path.write_text("two")
    assert read(str(path)) == hashlib.sha256(b"two").hexdigest()
    path.write_text("abc")  # in the same clock tick, perhaps
    assert read(str(path)) == hashlib.sha256(b"abc").hexdigest()
