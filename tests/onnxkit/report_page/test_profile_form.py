"""The part of a page about ONNX Runtime's profile."""

import json

from onnxbuild.onnxkit.report_page.forms.profile import profile
from onnxbuild.onnxkit.report_page.model import ReportSource


def test_nodes_are_counted_as_whole_numbers_where_they_are(tmp_path):
    operators = [
        {"operator": name, "nodes": count, "ms": 1.0}
        for name, count in (("Loop", 1.0), ("MatMul", 11.0), ("Relu", 2.5))
    ]
    report = {"points": {"fixed": {"operators": operators, "nodes": []}}}
    (tmp_path / "report.json").write_text(json.dumps(report))
    files = {"report.json": tmp_path / "report.json"}
    (part,) = profile([ReportSource("profile", "int8", "profile", files=files)])
    labels = [bar.label for bar in part.blocks[0].bars]
    assert labels == ["Loop (1 node)", "MatMul (11 nodes)", "Relu (2.5 nodes)"]
