"""Medians that a page shows: of an even number of values, the middle of the two in the middle."""

import json

import numpy as np

from onnxbuild.onnxkit.report_page.forms.fidelity import fidelity
from onnxbuild.onnxkit.report_page.forms.validation import validation
from onnxbuild.onnxkit.report_page.model import ReportSource


def source(form, folder, report, **arrays):
    folder.mkdir()
    (folder / "report.json").write_text(json.dumps(report))
    np.savez(folder / "errors.npz", **arrays)
    names = ("report.json", "errors.npz")
    return ReportSource(form, "int8", form, files={name: folder / name for name in names})


def test_the_median_error_of_two_points_is_between_them(tmp_path):
    points = [
        {"point": name, "sizes": {}, "outputs": {"y": {"max_abs": error}}}
        for name, error in (("a", 0.1), ("b", 0.3))
    ]
    parts = list(validation([source("validate", tmp_path / "v", {"points": points})]))
    (strips,) = [part.blocks[0] for part in parts if part.section == "error"]
    assert strips.strips[0].middle == 0.2


def test_the_median_loss_of_four_samples_is_between_the_middle_two(tmp_path):
    report = {"cosine_mean": 0.7, "cosine_min": 0.4, "worst": 3, "sqnr_db": 9.0, "samples": 4}
    found = source("fidelity", tmp_path / "f", report, cosines=np.array([1.0, 0.75, 0.5, 0.25]))
    (part,) = fidelity([found])
    assert part.blocks[0].strips[0].middle == 0.375
