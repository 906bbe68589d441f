"""The time of a release: SOURCE_DATE_EPOCH, whatever is written there."""

import pytest

from onnxbuild.core.errors import UsageError
from onnxbuild.release.source import look_at_source


def epoch_s(monkeypatch, folder, text):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", text)
    return look_at_source(folder, {}, (), allow_dirty=True).epoch_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("1600000000", 1_600_000_000),
        ("253402300799", 253_402_300_799),
        ("0" * 5000 + "1600000000", 1_600_000_000),
    ],
)
def test_a_time_is_taken(monkeypatch, tmp_path, text, seconds):
    assert epoch_s(monkeypatch, tmp_path, text) == seconds


@pytest.mark.parametrize("text", ["today", "-1", "1.5", "\N{SUPERSCRIPT TWO}", "253402300800"])
def test_what_is_no_time_is_refused(monkeypatch, tmp_path, text):
    with pytest.raises(UsageError, match="expected seconds since 1970") as refused:
        epoch_s(monkeypatch, tmp_path, text)
    assert f"is '{text}'" in str(refused.value)


def test_more_digits_than_python_converts_are_refused_in_one_line(monkeypatch, tmp_path):
    with pytest.raises(UsageError, match=r"is '1{40}\.\.\.'"):
        epoch_s(monkeypatch, tmp_path, "1" * 5000)
