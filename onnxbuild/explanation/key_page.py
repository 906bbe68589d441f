"""The reference of one key of a recipe, for the terminal."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from onnxbuild.core.errors import UsageError, listed, nearest
from onnxbuild.core.json_schema import Schema
from onnxbuild.core.recipe import Location
from onnxbuild.document.node import node_of
from onnxbuild.explanation.key_example import example_of
from onnxbuild.plugins.bring import bring_plugins
from onnxbuild.project_folder import find_project
from onnxbuild.recipe.parts.keys import COMPONENTS
from onnxbuild.recipe.schema.key_index import NAME, KnownKey, known_keys
from onnxbuild.recipe.schema.recipe_schema import rendered_schema
from onnxbuild.recipe.schema.reference_page import ValueWords, titles_of
from onnxbuild.recipe.yaml.write import block_lines

_LABEL = 10  # characters before the text
_LEAST, _MOST = 50, 100
_ITEM = re.compile(r"\[\d*\]|\.\d+(?=\.|$)")
_PLACES = 12  # shown of a short name
_OF_COMPONENT = 2  # parts of a path before a component's own key: components.NAME


def is_key(text: str) -> bool:
    """Return whether an argument of `explain` may be a key: it is no file, and has the form of one."""
    is_path = "/" in text or text.endswith((".yaml", ".yml")) or Path(text).exists()
    return not is_path and re.fullmatch(r"[\w.\[\]-]+", text) is not None


def key_lines(text: str, columns: int) -> list[str]:
    """Return the reference of a key.

    Args:
        text: Its path, `quantization.int8.balance`; of a key that stands in one place, its end will do.
        columns: Characters in a line of the terminal.

    Raises:
        UsageError: No recipe has such a key.
    """
    bring_plugins(find_project(Path("recipe.yaml")))
    schema = rendered_schema()
    keys = known_keys(schema)
    typed = tuple(_ITEM.sub("", text).split("."))
    if len(typed) > _OF_COMPONENT and typed[0] == COMPONENTS:
        typed = typed[_OF_COMPONENT:]  # a component has the keys of a recipe
    found = _named(typed, keys) or _ending(typed, keys)
    if not found:
        raise _unknown(text, typed, keys)
    width = max(_LEAST, min(_MOST, columns))
    paths = list(dict.fromkeys(key.path for key in found))
    if len(paths) > 1:
        return list(_places(text, paths))
    return list(_Page(schema, typed, found, width).lines())


def _named(typed: tuple[str, ...], keys: Sequence[KnownKey]) -> list[KnownKey]:
    """Return the keys of a whole path; one of the recipe's own names stands for any."""
    alike = [key for key in keys if _fits(typed, key.path)]
    exact = max((_same(typed, key.path) for key in alike), default=0)
    return [key for key in alike if _same(typed, key.path) == exact]


def _ending(typed: tuple[str, ...], keys: Sequence[KnownKey]) -> list[KnownKey]:
    """Return the keys whose paths end as typed."""
    return [
        key
        for key in keys
        if key.path[-1] != NAME
        and _fits(typed, key.path[-len(typed) :])
        and typed[-1] == key.path[-1]
    ]


def _fits(typed: Sequence[str], path: Sequence[str]) -> bool:
    return len(typed) == len(path) and all(
        known in (NAME, one) for one, known in zip(typed, path, strict=True)
    )


def _same(typed: Sequence[str], path: Sequence[str]) -> int:
    return sum(one == known for one, known in zip(typed, path, strict=True))


def _unknown(text: str, typed: tuple[str, ...], keys: Sequence[KnownKey]) -> UsageError:
    written = [key.path for key in keys if key.path[-1] != NAME]
    if len(typed) == 1:
        known = [path[-1] for path in written]
    else:
        below = [path for path in written if path[0] == typed[0]] or written
        known = [".".join(_filled(typed, path)) for path in below]
    near = nearest(text, dict.fromkeys(known))
    return UsageError(
        f"no recipe has a key '{text}'; the nearest are {listed(near, 'and')}",
        fix=f"onnxbuild explain {near[0]}; all keys: docs/recipe.md",
    )


def _filled(typed: Sequence[str], path: Sequence[str]) -> tuple[str, ...]:
    """A path with the names that were typed in the place of NAME."""
    return tuple(
        typed[n] if part == NAME and n < len(typed) else part for n, part in enumerate(path)
    )


def _places(text: str, paths: Sequence[tuple[str, ...]]) -> Iterator[str]:
    yield f"'{text}' stands in {len(paths)} places:"
    yield from (f"  {'.'.join(path)}" for path in paths[:_PLACES])
    if len(paths) > _PLACES:
        yield f"  ... and {len(paths) - _PLACES} more: docs/recipe.md"
    yield f"to read of one: onnxbuild explain {'.'.join(paths[0])}"


class _Page:
    def __init__(
        self, schema: Schema, typed: tuple[str, ...], found: Sequence[KnownKey], width: int
    ) -> None:
        self._schema = schema
        self._typed = typed if len(typed) == len(found[0].path) else found[0].path
        self._found = found
        self._width = width
        self._words = ValueWords(schema["$defs"])

    def lines(self) -> Iterator[str]:
        """Yield the reference; forms of a key that differ, as in two modes, are listed one by one."""
        yield ".".join(self._found[0].path)
        groups: dict[tuple[str, str, str], list[KnownKey]] = {}
        for key in self._found:
            groups.setdefault(self._said(key), []).append(key)
        for said, keys in groups.items():
            yield ""
            yield from self._group(said, keys)

    def _said(self, key: KnownKey) -> tuple[str, str, str]:
        schema = key.schema
        text = schema.get("description") or self._words.resolved(schema).get("description", "")
        return str(text), self._words.value(schema), self._words.default(schema)

    def _group(self, said: tuple[str, str, str], keys: Sequence[KnownKey]) -> Iterator[str]:
        text, value, default = said
        if text:
            yield from textwrap.wrap(
                f"{text[0].upper()}{text[1:].removesuffix('.')}.", self._width
            )
            yield ""
        yield from self._labelled("value", _plain(value))
        needed = "none: it must be written" if keys[0].is_needed else "none"
        yield from self._labelled("default", _plain(default) or needed)
        yield from self._labelled("in", listed(list(dict.fromkeys(map(_place, keys))), "and"))
        below = self._below(keys[0])
        if below:
            yield from self._labelled("keys", ", ".join(below))
        example = node_of(example_of(keys[0], self._typed, self._schema), Location("", 0, 0))
        for n, line in enumerate(block_lines(example, lambda _: "")):
            yield f"{'' if n else 'example':<{_LABEL}}{line}"
        title = titles_of(self._schema, keys[:1])[0]
        yield from self._labelled("docs", f"docs/recipe.md#{_anchor(title)}")

    def _below(self, key: KnownKey) -> list[str]:
        way = (*key.above, ("", {}))
        names = [
            each.path[-1]
            for each in known_keys(self._schema)
            if each.path[:-1] == key.path and _holds(each.above, way[:-1])
        ]
        return list(dict.fromkeys(names))

    def _labelled(self, label: str, text: str) -> Iterator[str]:
        for n, line in enumerate(textwrap.wrap(text, self._width - _LABEL)):
            yield f"{'' if n else label:<{_LABEL}}{line}"


def _holds(above: Sequence[tuple[str, Schema]], way: Sequence[tuple[str, Schema]]) -> bool:
    """Return whether one way begins with another."""
    return len(above) > len(way) and all(
        name == other and mapping is same
        for (name, mapping), (other, same) in zip(above, way, strict=False)
    )


def _place(key: KnownKey) -> str:
    """Name the mapping that a key stands in."""
    title = re.sub(r"^a (?=[aeiou])", "an ", str(key.mapping.get("title", "")))
    at = ".".join(key.path[:-1])
    return f"{title} ({at})" if title and at else title or at or "a recipe"


def _plain(markdown: str) -> str:
    return markdown.replace("``", "empty").replace("` `", ", ").replace("`", "")


def _anchor(title: str) -> str:
    """Return a title as the docs' site has it in links."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())
