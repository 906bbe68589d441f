"""A lock's YAML, read so that it says one thing: no key twice, no merge, no key but a string."""

from __future__ import annotations

from typing import Any


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

    loader = Loader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()
