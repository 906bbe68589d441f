"""A comparison as a page: both sides next to each other, then each difference."""

from __future__ import annotations

from typing import Any

from onnxbuild.comparison.compare import GROUPS, ComparedSides, Difference
from onnxbuild.comparison.figures import shown_pair
from onnxbuild.comparison.text import latency_kind, summary
from onnxbuild.onnxkit.pages.page import render

_MOST_ROWS = 500
"""Of a group; what is cut is said."""

_TITLES = {
    "verdicts": "Verdicts",
    "accuracy": "Accuracy",
    "signature": "Signature",
    "recipe": "Recipe",
    "inputs": "Inputs",
    "tools": "Tools and machine",
    "graph": "Graph",
    "weights": "Weights",
    "files": "Files next to the model",
    "size": "Size",
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
        for group in GROUPS
        if (own := [each for each in found.differences if each.group == group])
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


def _row(each: Difference, *, several: bool) -> dict[str, Any]:
    """A difference; old and new apart where it is one value that changed."""
    data = each.data
    old, new = data.get("before", data.get("old")), data.get("after", data.get("new"))
    parted = isinstance(old, str | int | float) and isinstance(new, str | int | float)
    subject = data.get("subject") or data.get("gate") or data.get("name") or ""
    is_values = parted and bool(subject) and data.get("values") is None
    texts = _text(old), _text(new)
    if isinstance(old, float) and isinstance(new, float):
        texts = shown_pair(old, new)
    return {
        "variants": ", ".join(each.variants) if several else "",
        "sentence": each.sentence,
        "subject": subject if is_values else "",
        "old": texts[0] if is_values else "",
        "new": texts[1] if is_values else "",
    }


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "passed" if value else "failed"
    return f"{value:,}" if isinstance(value, int) else str(value) or "-"
