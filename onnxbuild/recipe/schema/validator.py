"""Each top-level key of a recipe against its part of the schema."""

import re
from collections.abc import Callable, Collection, Iterator
from functools import cache
from typing import Any

from onnxbuild.core.json_schema import Schema
from onnxbuild.document.faults import Fault
from onnxbuild.document.node import UNKNOWN, Node, node_at, plain, renamed
from onnxbuild.recipe.parts.keys import COMPONENTS
from onnxbuild.recipe.schema.explain import Explainer, missing_key
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
        self._explainer = Explainer(
            self._schema["$defs"], lambda value, part: bool(self._strict(part).is_valid(value))
        )

    @property
    def known(self) -> tuple[str, ...]:
        """The top-level keys of a recipe."""
        return tuple(self._schema["properties"])

    def unknown(self, root: Node) -> list[Fault]:
        """The top-level keys that no recipe has."""
        return [
            self._explainer.unknown_key(key, self._schema, (key,), root)
            for key in root.members
            if key not in self._schema["properties"]
        ]

    def missing(self, root: Node, *, by_file: bool) -> list[Fault]:
        """The top-level keys that a recipe must have and this one lacks.

        Args:
            by_file: Its model is a file, which says the rest.
        """
        then = self._schema["then"]
        required = then["required"]
        if COMPONENTS not in root.members:  # each of these is checked over what they share
            model = then["else"]
            required = [*required, *model["required"]]
            required += [] if by_file else model["else"]["required"]
        return [
            missing_key(key, self._schema, root, ()) for key in required if key not in root.members
        ]

    def check(self, key: str, root: Node) -> list[Fault]:
        """The faults of one known key's value."""
        node = root.child(key)
        if node is None or node.value is UNKNOWN:
            return []
        errors = self._validator(key).iter_errors(plain(node))
        return [fault for error in errors for fault in self._explainer.faults(error, root, (key,))]

    @cache  # noqa: B019 - lives as long as one load
    def _validator(self, key: str) -> Any:
        return self._strict(self._schema["properties"][key])

    def _strict(self, part: Schema) -> Any:
        return StrictValidator({"$defs": self._schema["$defs"], **part})


def as_meant(
    root: Node, faults_of: Callable[[Node], list[Fault]], fixed: Collection[str]
) -> tuple[Node, list[Fault]]:
    """Return the tree with misspelt keys read as those that they mean, and the faults of these.

    What such a key holds can then be checked as all else, and nothing is missed because of it.

    Args:
        faults_of: Returns the faults that the schema finds in a tree.
        fixed: Keys that nothing is taken for: what they say has been read.
    """
    reported: list[Fault] = []
    while True:
        mended = root
        for fault in faults_of(root):
            above = node_at(mended, fault.path[:-1])
            if not fault.meant or fault.meant in fixed or above is None:
                continue
            if fault.meant not in above.members:  # another key means it, too
                mended = renamed(mended, fault.path, fault.meant)
                reported.append(fault)
        if mended is root:
            return root, reported
        root = mended
