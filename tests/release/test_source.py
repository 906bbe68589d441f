"""The time of a release: SOURCE_DATE_EPOCH, whatever is written there."""

import pytest

from onnxbuild.core.errors import UsageError
from onnxbuild.release.source import look_at_source


def epoch_s(monkeypatch, folder, text):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", text)
    return look_at_source(folder, {}, (), allow_dirty=True).epoch_s


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0), ("0" * 5000 + "1600000000", 1_600_000_000)]
)
def test_a_time_is_taken(monkeypatch, tmp_path, text, seconds):
    assert epoch_s(monkeypatch, tmp_path, text) == seconds


@pytest.mark.parametrize("text", ["today", "253402300800"])
def test_what_is_no_time_is_refused(monkeypatch, tmp_path, text):
    with pytest.raises(UsageError, match="expected seconds since 1970") as refused:
        epoch_s(monkeypatch, tmp_path, text)
    assert f"is '{text}'" in str(refused.value)
