"""Two sides compared: what is said of verdicts, accuracy, variants and steps, and in which order."""

from __future__ import annotations

import pytest

from onnxbuild.comparison.compare import compare
from onnxbuild.comparison.sides import ComparedBundle, GateFailure, GateReport, Side
from onnxbuild.core.digest import Digest
from onnxbuild.lock.model import Lock, LockedStep


def side(*bundles, **fields):
    return Side("typed", "build", "title", bundles, **fields)


def bundle(name="int8", *, passed=True, errors=(0.01, 0.999), score=None, gates=(), failed=()):
    reports = [
        GateReport(
            "validation",
            "cpu",
            {"passed": passed, "metrics": {"max_abs": errors[0], "cosine_min": errors[1]}},
        )
    ]
    if score is not None:
        reports.append(GateReport("evaluation", "cpu", {"passed": None, "score": score}))
    reports += [GateReport("gate", of, content) for of, content in gates]
    return ComparedBundle("tiny", name, reports=tuple(reports), failed=failed, fix="onnxbuild run")


def said(before, after):
    found = compare(side(*before), side(*after))
    return [(each.group, each.sentence, each.variants) for each in found.differences]


FAILURE = GateFailure("int8/validate", "cosine 0.9 is below 0.99", "validation", "cpu")


def test_a_gate_that_fails_now_is_said_once():
    after = bundle(passed=False, failed=(FAILURE,), errors=(0.5, 0.9))
    assert said([bundle()], [after]) == [
        ("verdicts", "fails now: int8/validate: cosine 0.9 is below 0.99", ("int8",)),
        ("accuracy", "largest error on cpu: 0.01 -> 0.5 (+0.49)", ("int8",)),
        ("accuracy", "least cosine on cpu: 0.999 -> 0.9 (-0.099)", ("int8",)),
    ]
    assert said([after], [bundle()])[0] == (
        "verdicts",
        "no longer fails: int8/validate: cosine 0.9 is below 0.99",
        ("int8",),
    )


def test_a_gate_that_fails_on_both_sides_is_said_if_it_finds_something_else():
    one = bundle(passed=False, failed=(FAILURE,))
    other = GateFailure("int8/validate", "cosine 0.8 is below 0.99", "validation", "cpu")
    assert said([one], [one]) == []
    assert said([one], [bundle(passed=False, failed=(other,))]) == [
        ("verdicts", "still fails: int8/validate: cosine 0.8 is below 0.99", ("int8",))
    ]


def test_a_gate_that_decides_nothing_passes_or_fails_now():
    assert said([bundle()], [bundle(passed=False)]) == [
        ("verdicts", "validation on cpu fails now", ("int8",))
    ]
    assert said([bundle(passed=False)], [bundle()]) == [
        ("verdicts", "validation on cpu passes now", ("int8",))
    ]


def test_variants_on_one_side_alone():
    assert said([bundle("fp32"), bundle("int8")], [bundle("fp32"), bundle("int4")]) == [
        ("verdicts", "variant int8 is gone", ()),
        ("verdicts", "variant int4 is new", ()),
    ]


def test_a_score():
    assert said([bundle(score=0.9911)], [bundle(score=0.9889)]) == [
        ("accuracy", "score on cpu: 0.9911 -> 0.9889 (-0.0022)", ("int8",))
    ]
    assert said([bundle(score=0.9)], [bundle()]) == []


def test_the_figures_of_a_gate_that_a_plugin_brings():
    def of(size, *, passed=True):
        return bundle(gates=[("size", {"passed": passed, "size_bytes": size, "why": "text"})])

    assert said([of(1000)], [of(1500)]) == [
        ("accuracy", "size_bytes of size: 1000 -> 1500 (+5e+02)", ("int8",))
    ]
    assert said([of(1000)], [of(1000, passed=False)]) == [
        ("verdicts", "gate size fails now", ("int8",))
    ]


def test_figures_of_the_page_are_all_that_a_side_has():
    after = bundle(score=0.5, gates=[("size", {"size_bytes": 12.0})])
    found = compare(side(bundle()), side(after))
    assert found.figures["int8"] == [
        ("largest error on cpu", "0.01", "0.01", ""),
        ("least cosine on cpu", "0.999", "0.999", ""),
        ("score on cpu", "-", "0.5", ""),
        ("size_bytes of size", "-", "12", ""),
    ]


def test_a_failed_variant_whose_model_is_gone_has_a_note():
    after = bundle(passed=False, failed=(FAILURE,))
    found = compare(side(bundle()), side(after))
    assert found.notes == ("to see what differs in the models: onnxbuild run",)


def lock(**outputs):
    steps = {
        name: LockedStep("kind/1", "k", {"model": Digest(sha256 * 64, 10)})
        for name, sha256 in outputs.items()
    }
    return Lock(
        recipe="tiny.yaml", onnxbuild="1", resolved={}, host={}, python="3", packages={},
        files={}, sources={}, folders={}, steps=steps,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"a": "1", "b": "3"}, "step b gave another output, though no model differs"),
        (
            {"a": "2", "b": "3"},
            "step a gave another output (and 1 more after it), though no model differs",
        ),
    ],
)
def test_steps_that_gave_something_else_for_no_known_reason(other, sentence):
    before = side(bundle(), lock=lock(a="1", b="2"))
    found = compare(before, side(bundle(), lock=lock(**other)))
    assert [(e.group, e.sentence) for e in found.differences] == [("inputs", sentence)]
    assert compare(before, before).equal
    assert compare(before, side(bundle())).equal, "nothing is known of the other's steps"
