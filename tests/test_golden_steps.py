"""Code that makes outputs does not change without somebody asking whether the outputs do."""

from __future__ import annotations

import json

import pytest

from onnxbuild.catalog import CATALOG
from tests.golden_steps import GOLDEN, code_sha256, found

REWRITE = "then rewrite tests/golden/steps.json: python -m tests.golden_steps"


@pytest.fixture(scope="module")
def now():
    return found()


@pytest.mark.parametrize("kind", CATALOG)
def test_code_that_changes_what_a_step_makes_raises_its_version(kind, now):
    golden = json.loads(GOLDEN.read_text())
    if golden["python"] != now["python"]:
        pytest.skip(f"the digests are those of {golden['python']}")
    assert kind in golden["kinds"], f"'{kind}' is new: {REWRITE}"
    changed = [
        module
        for module in now["kinds"][kind]["modules"]
        if now["modules"][module] != golden["modules"].get(module)
    ]
    assert not changed, (
        f"{', '.join(changed)} changed: if that changes what '{kind}' makes of equal inputs, raise "
        f"`version` in its KIND, so that no old result is taken for a new one; {REWRITE}"
    )
    assert now["kinds"][kind] == golden["kinds"][kind], REWRITE


def test_comments_and_doc_strings_do_not_count_and_code_does():
    text = 'def f():\n    """Say."""\n    return 1\n'
    assert code_sha256(text) == code_sha256(text.replace("Say", "Tell") + "# done\n")
    assert code_sha256(text) != code_sha256(text.replace("1", "2"))


def test_what_the_kit_uses_in_turn_counts_too(now):
    modules = now["kinds"]["export"]["modules"]
    assert "onnxbuild.steps.export" in modules
    assert "onnxbuild.onnxkit.model.canonical" in modules
    assert "onnxbuild.onnxkit.optimize.ort_tools" in now["kinds"]["optimize"]["modules"]
