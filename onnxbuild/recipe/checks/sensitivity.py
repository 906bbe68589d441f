"""Check the options that a table or a choice of sensitive nodes needs."""

from __future__ import annotations

from collections.abc import Iterator

from onnxbuild.recipe.parts.parts import Parts, variant_nodes
from onnxbuild.recipe.yaml.faults import Fault
from onnxbuild.recipe.yaml.node import locate


def check_sensitivity(parts: Parts) -> Iterator[Fault]:
    """Yield the faults in `sensitivity`, and among variants that keep sensitive nodes."""
    section = parts.node("sensitivity")
    written = {} if section is None else section.members
    said = {key: written[key].node.value for key in ("rank_by", "table") if key in written}
    if said.get("rank_by") == "metric":
        if not parts.node("evaluate", "data"):
            what = "sensitivity ranks by the user's metric, and the recipe has no `evaluate`"
            at = locate(parts.root, ("sensitivity", "rank_by"))
            yield Fault(what, at, "add `evaluate: {data: ..., metric: ...}`")
        return
    if parts.node("fidelity", "data"):
        return
    if said.get("table") is True:
        what = "sensitivity asks for a table, and no fidelity.data is named to measure on"
        at = locate(parts.root, ("sensitivity", "table"))
        fix = "add `fidelity: {data: FILE.py:CALLABLE}`, or write `rank_by: metric`"
        yield Fault(what, at, fix)
    for name, (at, node) in variant_nodes(parts.root).items():
        if node.child("keep_most_sensitive"):
            what = f"variant '{name}' keeps sensitive nodes, and no fidelity.data is named"
            yield Fault(what, at, "add `fidelity: {data: FILE.py:CALLABLE}`")
