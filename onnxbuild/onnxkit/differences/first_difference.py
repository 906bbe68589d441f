"""First difference of two models: node, attribute or initializer, and how much else differs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.differences.arrays import array_difference, cut, in_words, shown
from onnxbuild.onnxkit.differences.attributes import attribute_changes
from onnxbuild.onnxkit.model.external_data import is_outside, weight_array
from onnxbuild.onnxkit.model.model_files import load_model

if TYPE_CHECKING:
    import onnx

_Found = tuple[str, str]  # (`node`, `initializer` or another noun, what differs)
_FIRST_NAMED = ("op_type", "domain", "name", "input", "output")


def model_difference(one: Path, other: Path) -> tuple[str, str]:
    """The first difference of two models, and how many nodes and initializers differ.

    First in the graph's order: a node comes after the initializers that it is the first to read.

    Returns: Two sentences; empty if the models mean the same.

    Raises:
        StepError: One of them can't be read.
    """
    found = list(_Pair(one, other).differences())
    if not found:
        return "", ""
    nouns = [noun for noun, _ in found]
    counts = [
        f"{nouns.count(noun)} {noun}{'s' if nouns.count(noun) != 1 else ''}"
        for noun in ("node", "initializer")
        if noun in nouns
    ]
    return found[0][1], f"{' and '.join(counts)} in all" if counts and len(found) > 1 else ""


class _Pair:
    """Two models; their tensors are read one at a time."""

    def __init__(self, one: Path, other: Path) -> None:
        self._one, self._other = one, other

    def differences(self) -> Iterator[_Found]:
        one, other = (load_model(path, weights="mapped") for path in (self._one, self._other))
        yield from self._graphs(one.graph, other.graph, "")
        functions = {f"{f.domain}:{f.name}": f for f in other.functions}
        for each in one.functions:
            match = functions.pop(f"{each.domain}:{each.name}", None)
            if match is None:
                yield "function", f"function '{each.name}' is gone"
            elif _bytes(each) != _bytes(match):
                yield from self._nodes(each.node, match.node, f"function '{each.name}': ")
                rest = _fields(each, match, ("node",), f"function '{each.name}': ")
                yield from (("function", said) for said in rest)
        yield from (("function", f"function '{each.name}' is new") for each in functions.values())
        yield from (("model", said) for said in _fields(one, other, ("graph", "functions"), ""))

    def _graphs(self, one: Any, other: Any, inside: str) -> Iterator[_Found]:
        ones = {tensor.name: tensor for tensor in one.initializer}
        others = {tensor.name: tensor for tensor in other.initializer}
        done: set[str] = set()

        def initializers(names: Iterable[str]) -> Iterator[_Found]:
            for name in names:
                if name in done or name not in ones:
                    continue
                done.add(name)
                said = self._tensors(ones[name], others[name]) if name in others else "it is gone"
                if said:
                    yield "initializer", f"{inside}initializer '{name}': {said}"

        yield from self._nodes(one.node, other.node, inside, initializers)
        yield from initializers(ones)
        new = [name for name in others if name not in ones]
        yield from (("initializer", f"{inside}initializer '{name}' is new") for name in new)
        for field in ("input", "output", "value_info"):
            yield from _values(getattr(one, field), getattr(other, field), f"{inside}{field}")
        done_with = ("node", "initializer", "input", "output", "value_info")
        yield from (("graph", said) for said in _fields(one, other, done_with, f"{inside}graph "))

    def _nodes(
        self,
        ones: Any,
        others: Any,
        inside: str,
        before: Callable[[Iterable[str]], Iterator[_Found]] = lambda names: iter(()),  # noqa: ARG005
    ) -> Iterator[_Found]:
        for number, (one, other) in enumerate(zip(ones, others, strict=False)):
            yield from before(one.input)
            if _bytes(one) != _bytes(other):
                yield from self._node(one, other, f"{inside}node {number}, ")
        for number in range(len(others), len(ones)):
            yield "node", f"{inside}node {number}, {_label(ones[number])}, is gone"
        for number in range(len(ones), len(others)):
            yield "node", f"{inside}node {number}, {_label(others[number])}, is new"

    def _node(self, one: Any, other: Any, inside: str) -> Iterator[_Found]:
        """The first thing about a node that differs, then what differs in its graphs."""
        if _label(one) != _label(other):
            yield "node", f"{inside}{_label(one)} -> {_label(other)}"
            return
        inside = f"{inside}{_label(one)}: "
        named = list(_fields(one, other, ("attribute",), inside))
        others = {attribute.name: attribute for attribute in other.attribute}
        below: list[_Found] = []
        for attribute in one.attribute:
            match = others.pop(attribute.name, None)
            if match is None:
                named.append(f"{inside}attribute '{attribute.name}' is gone")
            elif _bytes(attribute) != _bytes(match):
                label = f"{inside}attribute '{attribute.name}': "
                if attribute.HasField("g") and match.HasField("g"):
                    below += self._graphs(attribute.g, match.g, label)
                elif attribute.HasField("t") and match.HasField("t"):
                    said = self._tensors(attribute.t, match.t)
                    if said or not is_outside(attribute.t):
                        named.append(f"{label}{said or 'spelling'}")
                else:
                    named.append(f"{label}{_attribute(attribute, match)}")
        named += [f"{inside}attribute '{name}' is new" for name in others]
        if named:
            yield "node", named[0]
        yield from below

    def _tensors(self, one: onnx.TensorProto, other: onnx.TensorProto) -> str:
        if one.data_type != other.data_type or list(one.dims) != list(other.dims):
            return f"{_tensor_type(one)} -> {_tensor_type(other)}"
        return array_difference(weight_array(one), weight_array(other))


def _values(ones: Any, others: Any, noun: str) -> Iterator[_Found]:
    """Inputs, outputs or value infos, by name."""
    import onnx

    by_name = {value.name: value for value in others}
    for one in ones:
        other = by_name.pop(one.name, None)
        if other is None:
            yield noun, f"{noun} '{one.name}' is gone"
        elif _bytes(one) != _bytes(other):
            types = [onnx.helper.printable_type(value.type) for value in (one, other)]
            yield noun, f"{noun} '{one.name}': " + " -> ".join(types)
    yield from ((noun, f"{noun} '{name}' is new") for name in by_name)
    if not by_name and [v.name for v in ones] != [v.name for v in others]:
        yield noun, f"the order of {noun}s"


def _fields(one: Any, other: Any, done: Iterable[str], inside: str) -> Iterator[str]:
    """Yield `name: old -> new` for each field that differs between two messages."""
    names = [field.name for field in one.DESCRIPTOR.fields if field.name not in done]
    for name in sorted(names, key=lambda name: name not in _FIRST_NAMED):
        left, right = getattr(one, name), getattr(other, name)
        if left != right:
            yield f"{inside}{name}: {_field(left)} -> {_field(right)}"


def _field(value: Any) -> str:
    if isinstance(value, int | str | bytes | float):
        return shown(value)
    return cut(" ".join(repr(list(value)).split()))


def _label(node: onnx.NodeProto) -> str:
    return f"{node.op_type} '{node.name}'"


def _attribute(one: onnx.AttributeProto, other: onnx.AttributeProto) -> str:
    """Return the difference of an attribute that two nodes have: `old -> new`, or the elements that differ."""
    found = next(attribute_changes([one], [other], ""), None)
    if found is None:
        return "spelling"
    if found.values is None:
        return f"{found.old} -> {found.new}"
    return f"{found.old}: {in_words(found.values)}"


def _tensor_type(tensor: onnx.TensorProto) -> str:
    import onnx

    return f"{onnx.TensorProto.DataType.Name(tensor.data_type)} {list(tensor.dims)}"


def _bytes(message: Any) -> bytes:
    content: bytes = message.SerializeToString(deterministic=True)
    return content
