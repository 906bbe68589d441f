"""Parameters parse from JSON, fill their defaults in, and say where they do not fit."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pytest

from onnxbuild.catalog import MODES, PROGRAM_FORMATS, SECTIONS
from onnxbuild.core.params import from_json, option, to_json


@dataclass(frozen=True, slots=True)
class Inner:
    level: Literal["basic", "extended"] = option("basic", help="h")
    ratio: float = option(0.5, help="h", minimum=0)


@dataclass(frozen=True, slots=True)
class Grown:
    name: str
    later: float = field(default=0.0, metadata={"sparse": True})


def test_a_field_that_came_later_is_in_a_key_only_where_it_says_something():
    assert to_json(Grown("a")) == {"name": "a"}
    assert to_json(Grown("a", 0.5)) == {"name": "a", "later": 0.5}
    assert from_json(Grown, {"name": "a"}) == Grown("a")


@dataclass(frozen=True, slots=True)
class Outer:
    name: str
    count: int = 1
    names: tuple[str, ...] = ()
    limit: int | None = None
    either: bool | Literal["auto"] = "auto"
    inner: Inner = field(default_factory=Inner)
    by_name: Mapping[str, Inner] = field(default_factory=dict)
    anything: object = None


FULL = Outer("n", 2, ("a", "b"), 3, True, Inner("extended", 1.0), {"k": Inner()}, [1, {"x": None}])


def test_defaults_are_filled_in():
    assert from_json(Outer, {"name": "n"}) == Outer("n")


def test_what_was_written_reads_back():
    assert from_json(Outer, json.loads(json.dumps(to_json(FULL)))) == FULL


def test_an_int_is_taken_for_a_float_and_becomes_one():
    ratio = from_json(Inner, {"ratio": 1}).ratio
    assert ratio == 1.0
    assert isinstance(ratio, float)


@pytest.mark.parametrize(
    ("value", "reported"),
    [
        ({}, ": key 'name' is missing"),
        ({"name": 1}, "name: found 1; expected str"),
        ({"name": "n", "count": True}, "count: found True; expected int"),
        ({"name": "n", "limit": "3"}, "limit: found '3'; expected int | NoneType"),
        ({"name": "n", "inner": {"ratio": True}}, "inner.ratio: found True; expected float"),
        ({"name": "n", "by_name": {"k": {"levl": 1}}},
         "by_name.k: unknown key 'levl'; expected level, ratio"),
    ],
)  # fmt: skip
def test_what_does_not_fit_says_where(value, reported):
    with pytest.raises(ValueError) as caught:
        from_json(Outer, value)
    assert str(caught.value) == reported


OPTIONS = [
    *(each.options for each in SECTIONS.values()),
    *(each.options for each in MODES.values() if each.options is not None),
    *(each.options for each in PROGRAM_FORMATS.values()),
]


@pytest.mark.parametrize("kind", OPTIONS, ids=lambda kind: kind.__name__)
def test_every_options_type_reads_its_own_defaults_back(kind):
    made = kind()
    assert from_json(kind, json.loads(json.dumps(to_json(made)))) == made
