"""What a step lacks, and the one command that installs it."""

import re
import tomllib
from pathlib import Path

import pytest

from onnxbuild.adapters.toolchain.missing import missing_member
from onnxbuild.catalog import all_features, extra_of, needing
from onnxbuild.core.environment import NPM
from onnxbuild.core.step import COMPILER


def test_programs_and_headers_are_named_with_how_to_get_them():
    assert missing_member("<program cmake>", ("/usr/bin",)).what == (
        "the program 'cmake'; there is none in /usr/bin"
    )
    assert "ORT_INCLUDE_DIR" in missing_member("<onnxruntime headers>", ()).fix


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("skl2onnx", "pip install 'onnxbuild[sklearn]'"),
        ("lightgbm", "pip install 'onnxbuild[lightgbm]'"),
        ("onnxscript", "pip install onnxscript"),
    ],
)
def test_a_package_of_an_extra_is_installed_with_all_of_it(name, fix):
    found = missing_member(name, (), extra_of(name))
    assert found.what == f"the package '{name}', which is not installed"
    assert found.fix == fix


def test_each_extra_that_a_feature_names_brings_the_package():
    content = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    extras = tomllib.loads(content)["project"]["optional-dependencies"]
    for feature in all_features():
        for package, extra in feature.extras.items():
            assert any(re.match(rf"{package}\b(?!-)", each) for each in extras[extra]), package


def test_what_needs_a_program_is_named_as_recipes_ask_for_it():
    assert needing(COMPILER) == "formats: [aotinductor]"
    assert needing(NPM) == "packages: {node, web}"
    assert needing("nothing") == ""
