"""Lists of npm's packages: what keys have of them; those that come with onnxbuild."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from onnxbuild.adapters.toolchain.npm_lists import asked_of, manifest_of, packages_listed
from onnxbuild.own_folder import OWN_FOLDER

COMMITTED = sorted(Path(OWN_FOLDER).rglob("package-lock.json"))
TEXT = json.dumps(
    {
        "lockfileVersion": 3,
        "packages": {
            "": {"dependencies": {"a": "1.0.0"}},
            "node_modules/a": {"version": "1.0.0", "integrity": "sha512-A"},
            "node_modules/a/node_modules/@s/b": {"version": "2.0.0", "integrity": "sha512-B"},
        },
    }
)


def test_a_package_counts_by_its_integrity():
    assert packages_listed(TEXT) == {
        "a": "a 1.0.0 sha512-A",
        "a/node_modules/@s/b": "@s/b 2.0.0 sha512-B",
    }
    assert asked_of(TEXT) == ["a 1.0.0"]
    assert json.loads(manifest_of(TEXT))["dependencies"] == {"a": "1.0.0"}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{}", "it has no `packages`"),
        ('{"packages": {"node_modules/a": {"version": "1"}}}', "it gives 'a' no integrity"),
        ('{"packages": {"elsewhere": {}}}', "it has 'elsewhere', which is in no node_modules"),
    ],
)
def test_a_list_that_leaves_something_open_is_none(text, what):
    with pytest.raises(ValueError, match=what):
        packages_listed(text)


def test_a_list_of_pips_asks_npm_for_nothing():
    assert asked_of("tensorflow==2.19.0\n") == []


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
def test_a_list_that_comes_with_onnxbuild_names_hashes_and_no_hosts(path):
    text = path.read_text()
    assert "://" not in text
    assert all(each.split(" ")[2].startswith("sha512-") for each in packages_listed(text).values())
    assert asked_of(text)
