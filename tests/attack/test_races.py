"""Files that are saved while a build runs: before any of its file operations, one after another.

That build may end either way; the next one is right. Every third operation is tried, the other two
thirds' turn comes with ONNXBUILD_EVERY=1.
"""

import os
from dataclasses import replace

import pytest

from tests.attack import cheap, tiny

EVERY = int(os.environ.get("ONNXBUILD_EVERY", "3"))


@pytest.mark.parametrize(("name", "old", "new"), [("m.py", "x = 1\n", "x = 2\n"), ("d", "1", "2")])
def test_whenever_a_file_is_saved_the_next_run_knows_it(scratch, server, name, old, new):
    place = cheap.make(scratch / "place")
    leaning = {"sources": ["m"]} if name == "m.py" else {"files": ["d"]}
    first = cheap.step_of("first", **leaning)
    steps = [first, cheap.step_of("second", value=1, **leaning), cheap.step_of("third", "first")]
    path = place.project / name

    right = {}
    for text in (new, old):
        path.write_text(text)
        clean = replace(place, store=scratch / f"clean {len(right)}")
        right[text] = (server.build(clean, steps).outputs, tiny.delivered(clean.store))
    assert server.build(place, [first]).code == 0  # so that it is reused while the others run
    cheap.copy(place.store, scratch / "spare")

    at, was_saved = 1 - EVERY + (name == "d") % EVERY, True  # the two files at different ones
    while was_saved:
        at += EVERY
        cheap.copy(scratch / "spare", place.store)
        path.write_text(old)
        ended = server.build(place, steps, edit=(at, name, new))
        assert (ended.code, ended.error) in {(0, ""), (1, "")}  # a step may fail, the build not
        was_saved = path.read_text() == new
        for text in (new, old):
            if path.read_text() != text:  # else it stays as it was saved, times and all
                path.write_text(text)
            after = server.build(place, steps)
            assert (after.code, after.outputs) == (0, right[text][0]), at
            assert tiny.delivered(place.store) == right[text][1], at
    assert at > 50
