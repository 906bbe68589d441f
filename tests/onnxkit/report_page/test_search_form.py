"""The part of a page about a search."""

import json

import pytest

from onnxbuild.onnxkit.report_page.blocks import ReportSource
from onnxbuild.onnxkit.report_page.forms.search import search


def trial(name, missed, missed_judging):
    return {
        "name": name,
        "written": f"{name}: dynamic",
        "choosing": {"cosine_mean": 0.99, "cosine_min": 0.98},
        "judging": {"cosine_mean": 0.98, "cosine_min": 0.97},
        "latency": 1.5,
        "size_bytes": 1 << 20,
        "on_front": True,
        "missed": missed,
        "missed_judging": missed_judging,
    }


@pytest.mark.parametrize(
    ("missed", "chosen", "title", "state"),
    [
        (({}, {}), "a", "auto: 1 trial, 'a' chosen", "chosen"),
        (({}, {}), "other", "auto: 1 trial, 'other' chosen", "met"),
    ],
)
def test_a_search_that_chose_nothing_is_shown_as_such(tmp_path, missed, chosen, title, state):
    report = {"goal": {"cosine_mean": 0.98}, "chosen": chosen, "trials": [trial("a", *missed)]}
    (tmp_path / "report.json").write_text(json.dumps(report))
    source = ReportSource(
        "search", "auto", "choose", files={"report.json": tmp_path / "report.json"}
    )
    (part,) = search([source])
    plot, table = part.blocks
    assert plot.title == title
    cell = table.rows[0][6]
    assert getattr(cell, "text", cell) == state


def test_trials_that_give_one_number_a_sample_are_shown_by_their_noise(tmp_path):
    made = {**trial("a", {}, {}), "one_number": True}
    made["choosing"] = {"cosine_mean": 1.0, "cosine_min": 1.0, "sqnr_db": 20.0}
    report = {"goal": {"sqnr_db": 10}, "chosen": "a", "trials": [made]}
    (tmp_path / "report.json").write_text(json.dumps(report))
    files = {"report.json": tmp_path / "report.json"}
    (part,) = search([ReportSource("search", "auto", "choose", files=files)])
    assert part.blocks[0].y_axis == "loss: noise to signal (lower is better)"
    assert part.blocks[0].dots[0].y == 0.01
