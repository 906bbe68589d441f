"""What a person reads of each promise of the terminal, all of it: through a pipe, and on 80 columns."""

import pytest

from tests.golden_words import CASES, FOLDER, REAL, TABLES, text_of


@pytest.mark.parametrize("name", [*CASES, *TABLES])
def test_the_words_are_those_of_the_golden_file(name, tmp_path):
    assert text_of(name, tmp_path) == (FOLDER / f"{name}.txt").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_the_words_of_a_real_build_are_those_of_the_golden_file(name, tmp_path):
    assert text_of(name, tmp_path) == (FOLDER / f"{name}.txt").read_text()


def test_each_golden_file_is_of_a_case():
    assert {path.stem for path in FOLDER.glob("*.txt")} == {*CASES, *TABLES, *REAL}
