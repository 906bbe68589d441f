"""What moved since the last good build: cells, variants that came and went; no noise."""

from __future__ import annotations

import pytest

from onnxbuild.watching.difference import difference


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
