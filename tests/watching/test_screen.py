"""The screen of `watch` on terminals of several heights: what moved is seen, and the keys."""

import io

import pytest
from rich.console import Console

from onnxbuild.core.event import RunFinished
from onnxbuild.terminal.watch_displays import Screen
from onnxbuild.watching.loop import difference
from onnxbuild.watching.result import WatchedBuild
from tests.terminal import plain


def drawn(height: int, build: WatchedBuild) -> list[str]:
    """The last screen, without the spaces that fill it."""
    file = io.StringIO()
    console = Console(file=file, width=80, height=height, force_terminal=True, highlight=False)
    screen = Screen("tiny.yaml", console)
    with screen:
        screen.begin(build)
        screen.end(build)
        text = file.getvalue()
    return plain(text.rpartition("\x1b[H")[2].encode()).splitlines()


@pytest.fixture
def build():
    rows = [{"recipe": "tiny", "variant": f"v{number}", "size": "1 MiB"} for number in range(20)]
    moved = ["tiny:v3: size 2 MiB -> 1 MiB", "tiny:v9: size 3 MiB -> 1 MiB"]
    ended = RunFinished("", 3, 14, 0, 0, 4.2, 0)
    return WatchedBuild(("tiny.yaml",), 0, ended, rows, moved=moved)


def test_what_moved_stands_above_the_table_and_is_seen_on_a_short_terminal(build):
    lines = drawn(14, build)
    assert len(lines) == 14
    assert lines[:8] == [
        "watching tiny.yaml",
        "",
        "saved    tiny.yaml",
        "ok       3 built, 14 cached, 4.2 s",
        "",
        "since the last good build:",
        "  tiny:v3: size 2 MiB -> 1 MiB",
        "  tiny:v9: size 3 MiB -> 1 MiB",
    ]
    assert lines[9].split() == ["recipe", "variant", "size"]
    assert lines[10].split()[1] == "v0"
    assert lines[11] == "... 19 more lines, in a taller window"
    assert lines[-1] == "save a file to build again; q or Ctrl-C to stop"


def row(variant="int8", **cells):
    return {"recipe": "tiny", "variant": variant, "size": "1.0 KiB", "p50": "2.00 ms", **cells}


@pytest.mark.parametrize(
    ("before", "now", "lines"),
    [
        ([row()], [row()], []),
        (
            [row(score="0.9")],
            [row(score="0.8", size="9 B")],
            ["tiny:int8: size 1.0 KiB -> 9 B, score 0.9 -> 0.8"],
        ),
        ([row()], [row(p50="2.20 ms")], ["tiny:int8: p50 2.00 ms -> 2.20 ms"]),
        ([row(p50="0.01 ms")], [row(p50="0.03 ms")], ["tiny:int8: p50 0.01 ms -> 0.03 ms"]),
        ([row(score="0.9")], [row()], ["tiny:int8: score 0.9 -> -"]),
        ([row(), row("fp16")], [row()], ["tiny:fp16: gone"]),
    ],
)
def test_what_moved_is_said_and_noise_is_not(before, now, lines):
    assert difference(before, now) == lines
