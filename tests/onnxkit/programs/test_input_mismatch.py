"""A hint names what was meant, never the misspelled name itself."""

import pytest

from onnxbuild.onnxkit.programs.input_mismatch import nearest_input


@pytest.mark.parametrize(
    ("found", "declared", "hint"),
    [(["inptu"], ["input"], "did you mean 'input'?"), (["tokens"], ["tokens", "mask"], "")],
)
def test_the_hint_is_one_of_the_recipes(found, declared, hint):
    assert nearest_input(found, declared) == hint
