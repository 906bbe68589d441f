"""The rooms of the package: none too large, and the picture of them is as they are."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOM_MAX, FILE_MAX = 3_000, 300  # lines
A_LIST = "onnxbuild.steps"  # of files that know nothing of each other


@pytest.fixture(scope="module")
def rooms():
    return runpy.run_path(str(ROOT / "docs/rooms.py"))


def test_no_room_has_more_lines_than_one_keeps_in_mind(rooms):
    sizes = {room: rooms["size_of"](room) for room in rooms["rooms"]() if room != A_LIST}
    assert {room: size for room, size in sizes.items() if size > ROOM_MAX} == {}


def test_no_file_has_more_lines_than_one_reads_at_once():
    sizes = {
        path.relative_to(ROOT).as_posix(): len(path.read_text().splitlines())
        for path in (ROOT / "onnxbuild").rglob("*.py")
    }
    assert {path: size for path, size in sizes.items() if size > FILE_MAX} == {}


def test_the_picture_of_the_rooms_is_as_they_are(rooms):
    page = rooms["PAGE"].read_text()
    assert rooms["written"](page) == page, "type: make golden"
