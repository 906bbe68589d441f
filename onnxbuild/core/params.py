"""Typed parameters: frozen dataclasses that parse from JSON values and describe themselves."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")

_SCALARS = frozenset({str, int, float, bool, type(None)})


def option(
    default: Any = dataclasses.MISSING,
    *,
    help: str,  # noqa: A002 - the word the reader of a recipe knows
    minimum: float | None = None,
    maximum: float | None = None,
    pattern: str | None = None,
    key: str | None = None,
    sparse: bool | None = None,
) -> Any:
    """A documented field of a parameters dataclass.

    Args:
        default: The value when the recipe is silent; leave out for a required field.
        help: One line for the schema, the reference page and the editor.
        minimum: Least value allowed (of each item, for a tuple).
        maximum: Greatest value allowed (of each item, for a tuple).
        pattern: Regular expression (ECMA) a string must match.
        key: The key in a recipe, where a field can't have that name.
        sparse: It came later: the default is in no step's key.
    """
    more = {
        "minimum": minimum,
        "maximum": maximum,
        "pattern": pattern,
        "key": key,
        "sparse": sparse,
    }
    metadata = {"help": help, **{k: v for k, v in more.items() if v is not None}}
    return dataclasses.field(default=default, metadata=metadata)


def to_json(value: object) -> Any:
    """Plain JSON of a parameters dataclass, defaults filled in.

    Fields whose metadata says `local` (where things are on this machine) are left out, and those
    that say `sparse` as long as they have their default: they came later, and change no older key.
    """
    kind: type = type(value)
    if kind in _SCALARS:
        return value
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    fields = _portable_fields(kind)
    if fields is None:
        return value
    sparse = _sparse_fields(kind)
    given = ((name, key, getattr(value, name)) for name, key in fields.items())
    return {
        key: to_json(each)
        for name, key, each in given
        if name not in sparse or each != sparse[name]
    }


def key_of(field: dataclasses.Field[Any]) -> str:
    """Return the key that a field has in JSON: its name, or what its metadata calls `key`."""
    return str(field.metadata.get("key", field.name))


@cache
def _portable_fields(kind: type) -> Mapping[str, str] | None:
    """Name -> key of a dataclass's fields; None if it is none."""
    if not dataclasses.is_dataclass(kind):
        return None
    return {f.name: key_of(f) for f in dataclasses.fields(kind) if not f.metadata.get("local")}


@cache
def _sparse_fields(kind: type) -> Mapping[str, object]:
    """Fields that count only where they are not at their default, and these."""
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return {f.name: f.default for f in fields if f.metadata.get("sparse")}


@cache
def hints(kind: type) -> dict[str, Any]:
    """The resolved annotations of a dataclass's fields."""
    return typing.get_type_hints(kind)


def from_json(kind: type[T], value: object, path: str = "") -> T:
    """Parse a JSON value into the annotated type `kind`.

    Understands dataclasses, Literal, unions, tuple[X, ...], dict[str, X] and the JSON scalars;
    an int is taken where a float is asked for, never the other way.

    Raises:
        ValueError: The value does not fit; the message starts with the dotted path.
    """
    return typing.cast("T", _parse(kind, value, path))


def _parse(kind: Any, value: object, path: str) -> object:
    origin = typing.get_origin(kind)
    if kind is Any or kind is object:
        return value
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _parse_dataclass(kind, value, path)
    if origin is typing.Literal:
        if value in typing.get_args(kind) and not isinstance(value, bool):
            return value
        raise _mismatch(path, value, " | ".join(map(str, typing.get_args(kind))))
    if origin in (typing.Union, types.UnionType):
        return _parse_union(kind, value, path)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise _mismatch(path, value, "a list")
        item = typing.get_args(kind)[0]
        return tuple(_parse(item, each, f"{path}[{n}]") for n, each in enumerate(value))
    if origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise _mismatch(path, value, "a mapping")
        item = typing.get_args(kind)[1]
        return {str(key): _parse(item, each, f"{path}.{key}") for key, each in value.items()}
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is type(None) and value is None:
        return None
    if isinstance(kind, type) and type(value) is kind:
        return value
    raise _mismatch(path, value, getattr(kind, "__name__", str(kind)))


def _parse_union(kind: Any, value: object, path: str) -> object:
    for choice in typing.get_args(kind):
        try:
            return _parse(choice, value, path)
        except ValueError:
            continue
    names = " | ".join(getattr(c, "__name__", str(c)) for c in typing.get_args(kind))
    raise _mismatch(path, value, names)


def _parse_dataclass(kind: type, value: object, path: str) -> object:
    if not isinstance(value, Mapping):
        raise _mismatch(path, value, "a mapping")
    fields = {key_of(f): f for f in dataclasses.fields(kind)}
    unknown = sorted(set(map(str, value)) - set(fields))
    if unknown:
        raise ValueError(f"{path}: unknown key '{unknown[0]}'; expected {', '.join(fields)}")
    annotations = hints(kind)
    parsed = {}
    for key, field in fields.items():
        if key in value:
            place = f"{path}.{key}".lstrip(".")
            parsed[field.name] = _parse(annotations[field.name], value[key], place)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ValueError(f"{path}: key '{key}' is missing")
    return kind(**parsed)


def _mismatch(path: str, value: object, expected: str) -> ValueError:
    return ValueError(f"{path}: found {value!r}; expected {expected}")
