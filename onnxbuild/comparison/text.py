"""A comparison for the terminal: one line a difference, grouped, the most important first, long lists cut."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from onnxbuild.comparison.compare import ComparedSides
from onnxbuild.comparison.difference import ORDER, Difference
from onnxbuild.document.faults import printable

MOST_SHOWN = 6
"""Differences of a group that are shown."""


def lines_of(
    found: ComparedSides, *, width: int | None = None, most: int = MOST_SHOWN
) -> Iterator[str]:
    """Yield the lines.

    Args:
        found: The comparison.
        width: Characters in a line of the terminal; None where there is none.
        most: Differences of a group that are shown.
    """
    yield f"before  {found.before.title}"
    yield f"after   {found.after.title}"
    yield ""
    for group in ORDER:
        own = [each for each in found.differences if each.group is group]
        if own:
            yield group.value
            yield from _cut(_sentences(own, found), width, most)
    slower = [f"{each.variant}: {each.sentence}" for each in found.latencies]
    if slower:
        yield f"latency ({latency_kind(found)})"
        yield from _cut(slower, width, most)
    for note in found.notes:
        yield from _wrapped(f"note: {note}", width, "")
    yield summary(found)


def latency_kind(found: ComparedSides) -> str:
    """Say in words how the latencies were measured."""
    if any(each.speedup is not None for each in found.latencies):
        return "measured now, side by side"
    if all(each.together for each in found.latencies):
        return "as recorded in one build"
    return "as each build recorded it, at another time; --bench measures side by side"


def summary(found: ComparedSides) -> str:
    """The last line."""
    count = len(found.differences)
    if not count:
        return "no difference"
    return f"{count} difference{'s' if count != 1 else ''}"


def few_lines(found: ComparedSides, most: int) -> Iterator[str]:
    """Yield the most important differences alone, one line each, and how many more there are."""
    sentences = [
        f"{each.group.value}: {text}"
        for each, text in zip(found.differences, _sentences(found.differences, found), strict=True)
    ]
    sentences += [
        f"latency: {each.variant}: {each.sentence}" for each in found.latencies if each.known
    ]
    yield from sentences[:most]
    if len(sentences) > most:
        yield f"and {len(sentences) - most} more"


def _sentences(own: Sequence[Difference], found: ComparedSides) -> list[str]:
    """With the variants that each is of, where there are several; models may have any name for a node."""
    with_variants = len(found.figures) > 1
    return [
        printable(
            f"{', '.join(each.variants)}: {each.sentence}"
            if with_variants and each.variants
            else each.sentence
        )
        for each in own
    ]


def _cut(sentences: Sequence[str], width: int | None, most: int) -> Iterator[str]:
    for text in sentences[:most]:
        yield from _wrapped(text, width, "  ")
    if len(sentences) > most:
        yield f"  and {len(sentences) - most} more: --all, --json or --html FILE shows them"


def _wrapped(text: str, width: int | None, indent: str) -> Iterator[str]:
    if width is None:
        yield f"{indent}{text}"
        return
    yield from textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=f"{indent}  ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
