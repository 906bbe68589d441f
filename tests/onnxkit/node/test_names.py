"""Names of npm packages."""

from __future__ import annotations

import pytest

from onnxbuild.onnxkit.node.content import is_name, is_version, package_name


@pytest.mark.parametrize(
    ("recipe", "bundle", "pattern", "name"),
    [
        ("digits", "int8", "", "digits-int8"),
        ("digits", "int8-pipeline", "@me/digits-{variant}", "@me/digits-int8-pipeline"),
        ("été", "1", "", "t--1"),
    ],
)
def test_what_npm_does_not_take_is_mapped(recipe, bundle, pattern, name):
    assert package_name(recipe, bundle, pattern) == name
    assert is_name(name)


@pytest.mark.parametrize("name", ["", ".a", "a/b", "a" * 215])
def test_names_that_npm_refuses_are_none(name):
    assert not is_name(name)


@pytest.mark.parametrize(
    ("version", "is_one"),
    [("1.2.0", True), ("1.2", False), ("1.2.0-01", False), ("1.2.0\n", False)],
)
def test_versions_are_those_of_semantic_versioning(version, is_one):
    assert is_version(version) is is_one
