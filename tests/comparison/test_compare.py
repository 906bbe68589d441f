"""Two sides compared: what is said of verdicts, accuracy, variants and steps, and in which order."""

import re
from html import unescape
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnxbuild.comparison.compare import compare
from onnxbuild.comparison.figures import latencies, sized
from onnxbuild.comparison.sides import ComparedBundle, GateFailure, GateReport, Side
from onnxbuild.comparison.text import as_json, lines_of, page_of
from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import UsageError
from onnxbuild.lock.model import Lock, LockedStep
from onnxbuild.release_format.figures import Latency


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


def test_large_times_ratios_and_sizes_have_no_exponent(tmp_path):
    def slow(p50_ms, size_bytes):
        latency = Latency("cpu", "batch=1", p50_ms, p50_ms - 3, p50_ms + 3, None)
        return ComparedBundle(
            "tiny", "int8", folder=tmp_path, size_bytes=size_bytes, latencies=(latency,)
        )

    old, new = slow(12345.0, 100), slow(1999.7, 6_400_000)
    (found,) = latencies(old, new, "int8", together=True)
    assert found.sentence == (
        "on cpu at batch=1: 12,345 ms [12,342 to 12,348] -> 2,000 ms [1,997 to 2,003]: 6.17 x as fast"
    )
    assert [each.sentence for each in sized(old, new)] == ["100 -> 6,400,000 bytes (64,000 x)"]
    assert [each.sentence for each in sized(slow(1.0, 100), slow(1.0, 123_400))] == [
        "100 -> 123,400 bytes (1,234 x)"
    ]


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
        name: LockedStep("kind", 1, "k", {"model": Digest(sha256 * 64, 10)})
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


def file(path, *, at=None, name="join", **attributes):
    """A bundle that is one file: a product and a Concat; one weight may be changed."""
    weights = np.arange(16, dtype=np.float32).reshape(4, 4)
    if at is not None:
        weights[at] += 3
    values = [helper.make_tensor_value_info(n, 1, ("batch", n)) for n in "xy"]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="product"),
        helper.make_node("Concat", ["a", "a"], ["y"], name=name, **{"axis": 1, **attributes}),
    ]
    graph = helper.make_graph(
        nodes, "g", values[:1], values[1:], initializer=[numpy_helper.from_array(weights, "w")]
    )
    path.parent.mkdir(exist_ok=True)
    onnx.save(helper.make_model(graph), path)
    return ComparedBundle("tiny", path.stem, model=path)


def test_equal_sentences_of_variants_keep_the_places_of_each(tmp_path):
    """Of three variants, the third at another place than the first two."""
    places = {"fp32": (0, 1), "fp16": (0, 1), "int8": (3, 2)}
    before = [file(tmp_path / f"before/{name}.onnx") for name in places]
    after = [file(tmp_path / f"after/{name}.onnx", at=at) for name, at in places.items()]
    (found,) = as_json(compare(side(*before), side(*after)))["differences"]
    assert found["sentence"].startswith("weight 'w' of MatMul 'product': 1 of 16 elements differs")
    assert found["variants"] == ["fp32", "fp16", "int8"]
    assert found["data"]["values"]["first"] == [0, 1]
    assert {name: each["values"]["first"] for name, each in found["data_by_variant"].items()} == {
        "int8": [3, 2]
    }


def words(page):
    """The text of a page."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_a_page_says_what_has_changed_and_of_which_node(tmp_path):
    name = "<b>join</b> & 'more'"
    before = side(file(tmp_path / "one.onnx", name=name))
    found = compare(before, side(file(tmp_path / "two.onnx", name=name, axis=0)))
    sentence = f"attribute 'axis' of Concat '{name}': 1 -> 0"
    assert list(lines_of(found))[-2] == f"  {sentence}"
    page = page_of(found)
    assert "<b>join" not in page
    said = f"attribute 'axis' of Concat '{name}' : before: 1 → after: 0"
    assert said in words(page)


def test_models_that_mean_the_same_say_what_is_written_in_another_way(tmp_path):
    values = [helper.make_tensor_value_info(n, 1, ("batch",)) for n in "xy"]
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "g", [values[0]], [values[1]]
    )
    bundles = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.onnx"
        onnx.save(helper.make_model(graph, producer_name=name), path)
        digest = Digest.of(path.read_bytes()).sha256
        bundles.append(ComparedBundle("tiny", "fp32", model=path, sha256=digest))
    ((_, sentence, _),) = said(bundles[:1], bundles[1:])
    assert sentence == (
        "the same graph and weights, written in another way: producer_name: 'a' -> 'b'"
    )


def test_names_in_models_move_no_cursor(tmp_path):
    bundles = []
    for name in ("a\x1b[2J", "b\n"):
        values = [helper.make_tensor_value_info(n, 1, ("batch",)) for n in (name, "y")]
        graph = helper.make_graph(
            [helper.make_node("Relu", [name], ["y"])], "g", *([v] for v in values)
        )
        path = tmp_path / f"{len(bundles)}.onnx"
        onnx.save(helper.make_model(graph), path)
        digest = Digest.of(path.read_bytes()).sha256
        bundles.append(ComparedBundle("tiny", "fp32", model=path, sha256=digest))
    lines = list(lines_of(compare(side(bundles[0]), side(bundles[1]))))
    assert "  input 'a\\x1b[2J' is gone; it was float32 [batch]" in lines
    assert "  input 'b\\n' is new: float32 [batch]" in lines


@pytest.mark.parametrize(
    ("kind", "given", "folder", "command"),
    [
        ("build", "my bert.yaml", "/store/1", "onnxbuild diff x.onnx 'my bert.yaml:fp32'"),
        ("commit", "HEAD~1", "/store/1", "onnxbuild diff x.onnx 'HEAD~1' bert:fp32"),
    ],
)
def test_a_model_against_several_names_the_command_for_one(kind, given, folder, command):
    bundles = tuple(ComparedBundle("bert", n, folder=Path(folder)) for n in ("fp32", "int8"))
    many = Side(given, kind, "bert-1.0", bundles)
    one = Side("x.onnx", "model", "x.onnx", (ComparedBundle("", "x.onnx"),))
    with pytest.raises(UsageError) as raised:
        compare(one, many)
    assert raised.value.fix == command
