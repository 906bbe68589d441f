"""A comparison as a page: both sides next to each other, then each difference."""

from __future__ import annotations

from onnxbuild.comparison.compare import ComparedSides
from onnxbuild.comparison.difference import ORDER, Difference, Group
from onnxbuild.comparison.text import latency_kind, summary
from onnxbuild.onnxkit.pages.page import render

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
