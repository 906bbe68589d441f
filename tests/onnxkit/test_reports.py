import json

import pytest

from onnxbuild.onnxkit.reports import write_report


def test_a_report_is_sorted_readable_json(tmp_path):
    write_report(tmp_path, {"b": 1, "a": ["ü"]})
    text = (tmp_path / "report.json").read_text(encoding="utf-8")
    assert text == '{\n  "a": [\n    "ü"\n  ],\n  "b": 1\n}\n'
    assert json.loads(text) == {"b": 1, "a": ["ü"]}


def test_a_number_that_json_lacks_is_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_report(tmp_path, {"a": float("nan")})
