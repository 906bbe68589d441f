"""Check what a plug-in shows: columns of the table at a build's end, reports in releases."""

from __future__ import annotations

from collections.abc import Iterator

from onnxbuild.expansion.feature import Column, Feature


def column_faults(columns: object, label: str) -> list[str]:
    """Return what the table at a build's end can't show of a plug-in's columns.

    Args:
        columns: What the feature has there.
        label: The feature, for messages.
    """
    if not isinstance(columns, tuple) or not all(isinstance(each, Column) for each in columns):
        return [f"{label} has columns of {columns!r:.200}; expected a tuple of Column"]
    faults = []
    for each in columns:
        if not isinstance(each.title, str) or not each.title:
            faults.append(
                f"{label} has a column with the title {each.title!r:.200}; expected text"
            )
        elif type(each.place) is not int:
            faults.append(
                f"the column '{each.title}' has the place {each.place!r:.200}; expected an int"
            )
        elif not callable(each.cell):
            faults.append(f"the column '{each.title}' has a cell that is no function")
        elif each.heading is not None and not callable(each.heading):
            faults.append(f"the column '{each.title}' has a heading that is no function")
    return faults


def released_faults(feature: Feature, label: str) -> Iterator[str]:
    """Yield which of a plug-in's step kinds have no report that a release can show.

    Args:
        feature: Its kinds are sound.
        label: The feature, for messages.
    """
    own = {kind.name: kind for kind in feature.kinds}
    for key in ("released", "released_if_shared"):
        names: object = getattr(feature, key)
        if not isinstance(names, tuple):
            yield f"{label} has {key} of {names!r:.200}; expected a tuple of step kinds' names"
            return
        for name in names:
            if name not in own:
                yield f"{label} names '{name}' in {key}, which is none of its step kinds"
            elif dict(own[name].outputs) != {"report": "report"}:
                yield f"{label} names '{name}' in {key}, which has other outputs than one `report`"
