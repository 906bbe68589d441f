"""Each top-level key of a recipe against its part of the schema."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache
from typing import Any

from onnxbuild.document.faults import Fault
from onnxbuild.document.node import UNKNOWN, Node, plain
from onnxbuild.recipe.schema.explain import Explainer, missing_key, missing_keys
from onnxbuild.recipe.schema.json_schema import Schema
from onnxbuild.recipe.schema.lean_jsonschema import (
    Draft202012Validator,
    TypeChecker,
    ValidationError,
    validators,
)
from onnxbuild.recipe.schema.recipe_schema import rendered_schema


def _is_integer(_: TypeChecker, value: object) -> bool:
    return type(value) is int  # neither true nor 1.0


def _pattern(_: Any, pattern: str, value: object, __: Schema) -> Iterator[ValidationError]:
    """ECMA's meaning: ASCII classes, and `$` not before a line's end."""
    expression = re.sub(r"\$$", r"\\Z", pattern)
    if isinstance(value, str) and not re.search(expression, value, re.ASCII):
        yield ValidationError(f"{value!r} does not match {pattern}")


StrictValidator: Any = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    validators={"pattern": _pattern},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)
"""JSON Schema, with ECMA's patterns, for which true and 1.0 are no integers."""


class KeyValidator:
    """Validates top-level keys one by one, so that what did not change is checked once."""

    def __init__(self) -> None:
        self._schema = rendered_schema()
        self._explainer = Explainer(self._schema["$defs"])

    @property
    def known(self) -> tuple[str, ...]:
        """The top-level keys of a recipe."""
        return tuple(self._schema["properties"])

    def required(self, *, by_file: bool) -> tuple[str, ...]:
        """The keys that a recipe must have.

        Args:
            by_file: Its model is a file, which says the rest.
        """
        then = self._schema["then"]
        return (*then["required"], *(() if by_file else then["else"]["required"]))

    def frame(self, root: Node, required: Collection[str]) -> list[Fault]:
        """Unknown top-level keys, and the missing ones of `required`."""
        faults = [
            self._explainer.unknown_key(key, self._schema, (key,), root)
            for key in root.members
            if key not in self._schema["properties"]
        ]
        missing = missing_keys(required, root.members, self._schema, ())
        faults += [missing_key(key, self._schema, root, ()) for key in missing]
        return faults

    def check(self, key: str, root: Node) -> list[Fault]:
        """The faults of one known key's value."""
        node = root.child(key)
        if node is None or node.value is UNKNOWN:
            return []
        errors = self._validator(key).iter_errors(plain(node))
        return [fault for error in errors for fault in self._explainer.faults(error, root, (key,))]

    @cache  # noqa: B019 - lives as long as one load
    def _validator(self, key: str) -> Any:
        schema = {"$defs": self._schema["$defs"], **self._schema["properties"][key]}
        return StrictValidator(schema)
