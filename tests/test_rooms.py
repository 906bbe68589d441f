"""The rooms of the package: the page that lists them is current, and none knows features or providers by name."""

import ast
import runpy
import tomllib
from pathlib import Path

import pytest

from tests.known_names import (
    PLACES,
    PROVIDER_PLACES,
    WORDS,
    all_known,
    known,
    known_providers,
    literals,
    names,
    parsed,
    provider_words,
)

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def rooms():
    return runpy.run_path(str(ROOT / "docs/rooms.py"))


def test_the_page_of_rooms_is_as_they_are(rooms):
    assert rooms["page"]() == rooms["PAGE"].read_text(), "type: make golden"


def test_every_room_is_held_to_the_ban_on_frameworks_or_may_import_them():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (ban,) = (each for each in contracts["contracts"] if each["name"].startswith("frameworks"))
    names = {path.stem for path in (ROOT / "onnxbuild").glob("*") if path.suffix in ("", ".py")}
    banned = {name.partition(".")[2] for name in ban["source_modules"]}
    assert names - banned == {"steps", "features", "onnxkit", "__init__", "__pycache__"}


@pytest.mark.always
@pytest.mark.slow
def test_no_feature_is_known_by_name_outside_of_features_without_a_reason():
    found = {
        f"onnxbuild/{place}:{line}: {name}"
        for (place, name), line in all_known().items()
        if name not in WORDS and (place, name) not in PLACES
    }
    assert found == set(), "ask the features, or say in tests/known_names.py why it is known"


def test_every_reason_to_know_a_feature_by_name_is_used():
    found = all_known()
    assert set(PLACES) - set(found) == set()
    assert set(WORDS) - {name for _, name in found} == set()


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ('step = "benchmark"', "benchmark"),
        ('settings = {"sensitivity.table": "true"}', "sensitivity"),
        ("from onnxbuild.steps import tune", "tune"),
        ("from onnxbuild.expansion.benchmarks import SECTION", "benchmarks"),
    ],
)
def test_a_name_that_is_smuggled_in_is_found(line, name):
    assert list(known(f'"""benchmark"""\n{line}\n', names())) == [(2, name)]


@pytest.mark.always
@pytest.mark.slow
def test_no_code_outside_of_the_providers_knows_one_by_name():
    found = known_providers()
    said = {
        f"{place}:{found[place, name]} {name}"
        for place, name in found.keys() - PROVIDER_PLACES.keys()
    }
    assert said == set(), "ask all_providers() or named(): a field of core/provider.py holds it"
    assert PROVIDER_PLACES.keys() - found.keys() == set()


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ('is_gpu = name == "cuda"', "cuda"),
        ('wheel = "onnxruntime-directml"', "onnxruntime-directml"),
    ],
)
def test_the_search_finds_providers_in_code(line, name):
    assert list(literals(ast.parse(f'"""cuda"""\n{line}\n'), provider_words())) == [(2, name)]


def test_each_public_class_has_a_name_of_its_own():
    places: dict[str, list[str]] = {}
    for path in sorted((ROOT / "onnxbuild").rglob("*.py")):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
