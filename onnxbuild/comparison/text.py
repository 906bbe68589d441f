"""A comparison as lines for the terminal, as JSON and as a page."""

import shlex
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from onnxbuild.comparison.compare import ComparedSides, compare
from onnxbuild.comparison.figures import ORDER, Difference, Group
from onnxbuild.comparison.open_side import release_side
from onnxbuild.comparison.sides import Side
from onnxbuild.core.errors import BuildError
from onnxbuild.document.faults import printable
from onnxbuild.onnxkit.drawing.markup import render
from onnxbuild.output.pages import DiffRecord, SideRecord
from onnxbuild.release_format.about import version_order
from onnxbuild.release_format.forms import read_json
from onnxbuild.release_format.layout import RELEASE_FILE

MOST_SHOWN = 6
"""Differences of a group that are shown."""


def lines_of(
    found: ComparedSides, *, width: int | None = None, most: int = MOST_SHOWN
) -> Iterator[str]:
    """Yield the lines.

    Args:
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


def as_json(found: ComparedSides) -> DiffRecord:
    """Return a comparison as `diff --json` prints it."""
    return {
        "type": "diff",
        "equal": found.equal,
        "before": _side(found.before),
        "after": _side(found.after),
        "differences": [
            {
                "group": each.group.value,
                "sentence": each.sentence,
                "variants": list(each.variants),
                "data": each.data,
                "data_by_variant": each.data_by_variant,
            }
            for each in found.differences
        ],
        "latencies": [
            {
                "variant": each.variant,
                "provider": each.provider,
                "point": each.point,
                "sentence": each.sentence,
                "differs": each.known,
                "before_ms": list(each.before),
                "after_ms": list(each.after),
                "speedup": None if each.speedup is None else list(each.speedup),
            }
            for each in found.latencies
        ],
        "notes": list(found.notes),
    }


def _side(side: Side) -> SideRecord:
    return {
        "given": side.given,
        "kind": side.kind,
        "title": side.title,
        "bundles": [
            f"{each.recipe}:{each.name}" if each.recipe else each.name for each in side.bundles
        ],
    }


_MOST_ROWS = 500
"""Most rows that a group shows; the page says how many it leaves out."""

_TITLES = {
    Group.VERDICTS: "Verdicts",
    Group.ACCURACY: "Accuracy",
    Group.SIGNATURE: "Signature",
    Group.RECIPE: "Recipe",
    Group.INPUTS: "Inputs",
    Group.TOOLS: "Tools and machine",
    Group.GRAPH: "Graph",
    Group.WEIGHTS: "Weights",
    Group.FILES: "Files next to the model",
    Group.SIZE: "Size",
}
_KINDS = {
    "model": "a model file",
    "build": "a build",
    "folder": "a folder",
    "release": "a release",
    "commit": "a commit",
}


def page_of(found: ComparedSides) -> str:
    """Return the page; equal comparisons give equal pages."""
    groups = [
        {
            "name": _TITLES[group],
            "rows": [_row(each, several=len(found.figures) > 1) for each in own[:_MOST_ROWS]],
            "more": max(0, len(own) - _MOST_ROWS),
        }
        for group in ORDER
        if (own := [each for each in found.differences if each.group is group])
    ]
    values = {
        "title": f"{found.before.title} and {found.after.title}",
        "sides": [
            {"word": word, "title": side.title, "kind": _KINDS[side.kind], "given": side.given}
            for word, side in (("Before", found.before), ("After", found.after))
        ],
        "summary": summary(found),
        "equal": found.equal,
        "groups": groups,
        "figures": found.figures,
        "latencies": found.latencies,
        "latency_kind": latency_kind(found),
        "notes": found.notes,
    }
    return render("onnxbuild.comparison", "diff.html.j2", values)


def _row(each: Difference, *, several: bool) -> dict[str, str]:
    """A difference; old and new apart where it is one value that has changed."""
    change = (
        each.change if each.change is not None and each.change.old and each.change.new else None
    )
    return {
        "variants": ", ".join(each.variants) if several else "",
        "sentence": each.sentence,
        "subject": "" if change is None else change.subject,
        "old": "" if change is None else change.old,
        "new": "" if change is None else change.new,
    }


_SHOWN = 6


def lines_about_previous(folder: Path, previous: Path | None) -> Iterator[str]:
    """Yield what differs from the previous release of the same recipe; nothing where there is none.

    Args:
        previous: The previous one, if it is known; None for the one of the next lower version next to it.
    """
    before = previous or _previous(folder)
    if before is None:
        return
    command = f"onnxbuild diff {shlex.quote(_shown(before))} {shlex.quote(_shown(folder))}"
    try:
        with ExitStack() as stack:
            old, new = (release_side(path, _shown(path), stack) for path in (before, folder))
            found = compare(old, new)
    except BuildError as error:
        yield f"the difference to {_shown(before)} can't be shown: {error.what}"
        return
    if found.equal:
        yield f"no difference to {old.title}"
        return
    yield f"since {old.title}:"
    yield from (f"  {line}" for line in few_lines(found, _SHOWN))
    yield f"  all of it: {command}"


def _previous(folder: Path) -> Path | None:
    """The release of the same recipe with the next lower version in the same folder."""
    name, own = _title(folder)
    found = []
    for path in sorted(folder.parent.iterdir()):
        if path == folder or not (path / RELEASE_FILE).is_file():
            continue
        other, version = _title(path)
        if other == name and version and version_order(version) < version_order(own):
            found.append((version_order(version), path))
    return max(found)[1] if found else None


def _title(folder: Path) -> tuple[str, str]:
    """(name, version); empty where the release does not say so."""
    try:
        about = read_json((folder / RELEASE_FILE).read_bytes())
        return str(about["name"]), str(about["version"])
    except (OSError, ValueError, LookupError, TypeError):
        return "", ""


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
