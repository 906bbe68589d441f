"""A lock's YAML, read so that it says one thing: no key twice, no merge, no key but a string."""

from __future__ import annotations

from typing import Any

_MOST_VALUES = 10_000_000
_MARKS, _MOST_MARKS = ("\n", ",", "[", "{", "- "), 1_500_000
"""Texts of which each value has one, and how many a lock has at most: PyYAML takes 700 bytes for each value."""


def load_strictly(text: str) -> Any:
    """The value of a YAML document as `lock_text` writes it.

    Raises:
        yaml.YAMLError: It is none, or holds what leaves open which value is meant.
    """
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Refuses whatever could stand for two things."""

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's
            known: set[str] = set()
            for key, _ in node.value:
                if key.tag != "tag:yaml.org,2002:str":
                    raise _fault(f"key '{key.value}' is not a string", key)
                if key.value in known:
                    raise _fault(f"key '{key.value}' is written twice", key)
                known.add(key.value)
            found: dict[Any, Any] = super().construct_mapping(node, deep)
            return found

    def _fault(what: str, node: Any) -> yaml.YAMLError:
        return yaml.YAMLError(f"{what} (line {node.start_mark.line + 1})")

    if sum(map(text.count, _MARKS)) > _MOST_MARKS:
        raise yaml.YAMLError("it has more values than a lock has")
    loader = Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _values(node, {}) > _MOST_VALUES:
            raise _fault("aliases stand for more values than a lock has", node)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _values(node: Any, known: dict[int, float]) -> float:
    """Count the values that a node holds, each alias as all that it stands for.

    Forty lines of aliases to aliases are more than anybody can walk through, and an alias within what it
    stands for has no end.
    """
    if not isinstance(node.value, list):
        return 1
    if id(node) not in known:
        known[id(node)] = float("inf")  # until it is counted: it may be within itself
        pairs = ((each,) if hasattr(each, "value") else each for each in node.value)
        known[id(node)] = 1 + sum(_values(each, known) for pair in pairs for each in pair)
    return known[id(node)]
