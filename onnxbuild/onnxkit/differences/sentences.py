"""Differences of two models as sentences, one each; equal changes at many places are one."""

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from onnxbuild.onnxkit.differences.changes import Change, InputMoved, NodesChanged, WeightChanged
from onnxbuild.onnxkit.differences.models import Inside, ModelDifferences
from onnxbuild.onnxkit.differences.values import NOT_FINITE, ArrayDifference, AttributeChanged


@dataclass(frozen=True, slots=True)
class ValueChange:
    """One value that has changed, is new or is gone.

    Attributes:
        subject: Name of the value: `opset`, `attribute 'axis' of Concat 'join'`.
        old: Old value as text; empty if it is new.
        new: New value as text; empty if it is gone.
    """

    subject: str
    old: str
    new: str

    def __str__(self) -> str:
        if not self.old:
            return f"{self.subject} is new: {self.new}"
        if not self.new:
            return f"{self.subject} is gone; it was {self.old}"
        return f"{self.subject}: {self.old} -> {self.new}"


class ModelPart(Enum):
    """Part of a model that a difference is in."""

    SIGNATURE = "signature"
    OPSET = "opset"
    GRAPH = "graph"
    WEIGHTS = "weights"


_MOST_LISTED = 8
_FEW_WEIGHTS = 3


@dataclass(frozen=True, slots=True)
class Said:
    """One difference.

    Attributes:
        part: Part of the model that it is in.
        sentence: Sentence for a person, without a full stop.
        data: The same as JSON values; `kind` says which fields there are.
        change: The same as one value that has changed; None if it is no such thing.
    """

    part: ModelPart
    sentence: str
    data: dict[str, Any]
    change: ValueChange | None = None


def say(found: ModelDifferences) -> list[Said]:
    """Return a sentence for each difference, the most important first."""
    return [*_signature(found), *_facts(found), *_graph(found.changes), *_weights(found.changes)]


def _signature(found: ModelDifferences) -> Iterator[Said]:
    for each in found.signature:
        subject = f"{each.direction} '{each.name}'" if each.name else each.direction
        data = {"kind": "signature", **dataclasses.asdict(each)}
        yield _changed(ModelPart.SIGNATURE, ValueChange(subject, each.old, each.new), data)


def _facts(found: ModelDifferences) -> Iterator[Said]:
    for each in found.facts:
        data = {"kind": "fact", **dataclasses.asdict(each)}
        yield _changed(ModelPart.OPSET, ValueChange(each.name, each.old, each.new), data)


def _changed(part: ModelPart, change: ValueChange, data: dict[str, Any]) -> Said:
    return Said(part, str(change), data, change)


def _graph(changes: Iterable[Change | Inside]) -> Iterator[Said]:
    groups: dict[tuple[Any, ...], list[tuple[str, NodesChanged]]] = {}
    rest: list[tuple[str, AttributeChanged | InputMoved]] = []
    for where, change in map(_placed, changes):
        if isinstance(change, NodesChanged):
            key = where, change.gone, change.new, bool(change.folded_into)
            groups.setdefault(key, []).append((where, change))
        elif not isinstance(change, WeightChanged):
            rest.append((where, change))
    for same in sorted(groups.values(), key=len, reverse=True):
        where, first = same[0]
        data = {
            "kind": "nodes",
            "times": len(same),
            "gone": list(first.gone),
            "new": list(first.new),
            "places": [
                {
                    "where": inner,
                    "nodes": list(each.labels),
                    "after": list(each.after),
                    "before": list(each.before),
                    "folded_into": each.folded_into,
                }
                for inner, each in same
            ],
        }
        yield Said(ModelPart.GRAPH, _inside(where, _nodes(first, len(same))), data)
    yield from _attributes((w, c) for w, c in rest if isinstance(c, AttributeChanged))
    for where, each in rest:
        if isinstance(each, InputMoved):
            subject = each.node if each.slot < 0 else f"input {each.slot} of {each.node}"
            text = f"{subject} comes from {each.new} instead of {each.old}"
            data = {"kind": "connection", "where": where, **dataclasses.asdict(each)}
            yield Said(ModelPart.GRAPH, _inside(where, text), data)


def _attributes(found: Iterable[tuple[str, AttributeChanged]]) -> Iterator[Said]:
    """Say the same change of several nodes of one operator once."""
    groups: dict[tuple[Any, ...], list[AttributeChanged]] = {}
    for where, each in found:
        key = where, each.node.partition(" ")[0], each.name, each.old, each.new, each.values
        groups.setdefault(key, []).append(each)
    for (where, operator, *_), same in groups.items():
        first, nodes = same[0], [each.node for each in same]
        data = {"kind": "attribute", "where": where, **dataclasses.asdict(first)}
        del data["node"]
        if first.values is not None:
            data["values"] = _values_data(first.values)
        of = nodes[0] if len(nodes) == 1 else f"{len(nodes)} {operator} nodes"
        subject = f"attribute '{first.name}' of {of}"
        data["nodes"] = nodes
        if first.values is None:
            change = ValueChange(_inside(where, subject), first.old, first.new)
            yield _changed(ModelPart.GRAPH, change, data)
        else:
            text = f"{subject}: {_apart(first.values)}"
            yield Said(ModelPart.GRAPH, _inside(where, text), data)


def _placed(change: Change | Inside) -> tuple[str, Change]:
    return (change.where, change.change) if isinstance(change, Inside) else ("", change)


def _inside(where: str, text: str) -> str:
    return f"in {where}: {text}" if where else text


def _nodes(change: NodesChanged, times: int) -> str:
    gone, new = len(change.gone), len(change.new)
    labels = change.labels if times == 1 else (*change.gone, *change.new)
    if gone > 1 and new == 1:
        text = f"{gone} nodes were fused into one, {labels[-1]}: {listed(change.gone)}"
    elif gone == new == 1:
        text = f"{labels[0]} is now {labels[1]}"
    elif gone == 1 and new:
        text = f"{labels[0]} is now {new} nodes: {listed(change.new)}"
    elif gone and new:
        text = f"{gone} nodes became {new}: {listed(change.gone)} -> {listed(change.new)}"
    elif gone == 1 and change.folded_into:
        text = f"{labels[0]} was folded into {change.folded_into}, whose weights changed"
        return text if times == 1 else f"{times} times: {text} (the first)"
    else:
        count, is_what = gone or new, "gone" if gone else "new"
        single = labels[0] if count == 1 else listed(change.gone or change.new)
        text = f"{count} node{'s are' if count != 1 else ' is'} {is_what}: {single}"
    place = _place(change)
    if times == 1:
        return f"{text}, {place}" if place else text
    return f"{times} times: {text}" + (f", first {place}" if place else "")


def _place(change: NodesChanged) -> str:
    after, before = _first(change.after), _first(change.before)
    if after and before:
        return f"between {after} and {before}"
    if before:
        return f"before {before}"
    return f"after {after}" if after else ""


def _first(names: Sequence[str]) -> str:
    more = len(names) - 1
    return "" if not names else names[0] + (f" (and {more} more)" if more else "")


def listed(operators: Sequence[str]) -> str:
    """Return operators in order; many of them by how often there are."""
    if len(operators) <= _MOST_LISTED:
        return ", ".join(operators)
    counts = Counter(operators).most_common()
    shown = ", ".join(f"{count} {name}" for name, count in counts[:_MOST_LISTED])
    more = sum(count for _, count in counts[_MOST_LISTED:])
    return shown + (f" and {more} others" if more else "")


def _weights(changes: Iterable[Change | Inside]) -> Iterator[Said]:
    found = [(w, c) for w, c in map(_placed, changes) if isinstance(c, WeightChanged)]
    by_values = [(w, c) for w, c in found if c.values is not None]
    by_type: dict[tuple[str, str], list[tuple[str, WeightChanged]]] = {}
    for where, each in found:
        if each.values is None:
            key = _types(each)
            by_type.setdefault(key, []).append((where, each))
    for (old, new), same in by_type.items():
        data = [_weight_data(where, each) for where, each in same]
        if len(same) <= _FEW_WEIGHTS or not old or not new:
            for (where, each), one in zip(same, data, strict=True):
                change = ValueChange(_inside(where, _named(each)), each.old, each.new)
                yield _changed(ModelPart.WEIGHTS, change, one)
        else:
            first = same[0][1].name
            text = f"{len(same)} weights are {new} instead of {old}, first '{first}'"
            yield Said(ModelPart.WEIGHTS, text, {"kind": "weights", "weights": data})
    by_values.sort(key=lambda pair: -_size(pair[1]))
    for where, each in by_values:
        values = each.values
        assert values is not None
        text = f"{_named(each)}: {_apart(values)}"
        yield Said(ModelPart.WEIGHTS, _inside(where, text), _weight_data(where, each))


def _apart(values: ArrayDifference) -> str:
    """Return the difference of two arrays in words: how many elements differ, and by how much."""
    if values.size == 1:
        return f"{values.old} -> {values.new}"
    counts = (
        f"{values.count:,} of {values.size:,} elements differ{'s' if values.count == 1 else ''}"
    )
    if values.max_abs is None or (values.count == 1 and math.isinf(values.max_abs)):  # text, NaN
        first = ", the first" if values.count > 1 else ""
        return f"{counts}{first}: {values.old} -> {values.new}"
    if math.isinf(values.max_abs):
        return f"{counts}, {NOT_FINITE}"
    most = "at most " if values.count > 1 else ""
    largest = values.max_rel
    share = "" if largest is None else f" ({largest * 100:.3g} % of its largest value)"
    return f"{counts}, by {most}{values.max_abs:.3g}{share}"


def _types(each: WeightChanged) -> tuple[str, str]:
    """Types alone where the shape is the same, and ranks where it is not, so that equal changes are one sentence."""
    old, _, old_shape = each.old.partition(" [")
    new, _, new_shape = each.new.partition(" [")
    if old_shape == new_shape:
        return old, new
    if old == new and new_shape in {"]", "1]"} and "," not in old_shape:
        return f"one {old} for each channel", f"a single {new}"
    return each.old, each.new


def _named(each: WeightChanged) -> str:
    return f"weight '{each.name}' of {each.node}"


def _size(each: WeightChanged) -> float:
    values = each.values
    return 0.0 if values is None else values.max_rel or values.max_abs or 0.0


def _weight_data(where: str, each: WeightChanged) -> dict[str, Any]:
    data = {"kind": "weight", "where": where, **dataclasses.asdict(each)}
    if each.values is not None:
        data["values"] = _values_data(each.values)
    return data


def _values_data(values: ArrayDifference) -> dict[str, Any]:
    data = {**dataclasses.asdict(values), "first": list(values.first)}
    for name in ("max_abs", "max_rel"):
        if data[name] == float("inf"):
            data[name] = "inf"  # JSON has no infinity
    return data
