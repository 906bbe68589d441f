"""Names of npm packages."""

from __future__ import annotations

import pytest

from onnxbuild.onnxkit.node.names import is_name, is_version, package_name


@pytest.mark.parametrize(
    ("recipe", "bundle", "pattern", "name"),
    [
        ("digits", "int8", "", "digits-int8"),
        ("My Model_v2", "fp16 (fast)", "", "my-model_v2-fp16-fast"),
        ("digits", "int8-pipeline", "@me/digits-{variant}", "@me/digits-int8-pipeline"),
        ("digits", "INT8", "d-{variant}", "d-int8"),
        ("été", "1", "", "t--1"),
    ],
)
def test_what_npm_does_not_take_is_mapped(recipe, bundle, pattern, name):
    assert package_name(recipe, bundle, pattern) == name
    assert is_name(name)


@pytest.mark.parametrize(
    "name", ["", "Big", "a b", ".a", "_a", "@me", "@me/", "a/b", "@/a", "node_modules", "a" * 215]
)
def test_names_that_npm_refuses_are_none(name):
    assert not is_name(name)


@pytest.mark.parametrize(
    ("version", "is_one"),
    [
        ("1.2.0", True),
        ("0.0.0-rc.1+build.5", True),
        ("1.2", False),
        ("01.2.0", False),
        ("1.2.0-01", False),
        ("v1.2.0", False),
        ("1.2.0\n", False),
    ],
)
def test_versions_are_those_of_semantic_versioning(version, is_one):
    assert is_version(version) is is_one
