"""Pictures as SVG: what is connected in the graph is connected there, and all text is only text."""

import itertools
import json
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.pictures.diagram import Surroundings, draw, read_heat, unfold
from onnxbuild.onnxkit.pictures.folding import FoldedBlock, fold
from onnxbuild.onnxkit.pictures.nodes import of_dtype, read_graphs
from onnxbuild.onnxkit.pictures.page import lone_svg, model_svg
from onnxbuild.onnxkit.pictures.svg import Drawn, arrange
from tests.onnxkit.pictures.models import model_of, transformer, weight

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert('\"&')</script>\x00\x1b\u202e]]>"


def surroundings(model) -> Surroundings:
    graph = read_graphs(model)[0]
    return Surroundings(graph, fold(graph, "model"))


def all_blocks(block: FoldedBlock):
    for item in block.items:
        if isinstance(item, FoldedBlock):
            yield item
            yield from all_blocks(item)


def all_drawn(drawn: Drawn):
    yield drawn
    for inner in drawn.inside.values():
        yield from all_drawn(inner)


@pytest.mark.parametrize("named", [True, False])
def test_lines_are_the_values_that_run_between_boxes(named):
    """Each value that a node reads from another is in exactly the pictures where the two are apart."""
    around = surroundings(transformer(3, named=named))
    makers = {name: node.number for node in around.graph.nodes for name in node.makes}
    for block in (around.root, *all_blocks(around.root)):
        diagram = draw(around, block)
        places = {}
        for place, item in enumerate(diagram.items):
            content = item.content
            inside = (
                content.everything
                if isinstance(content, FoldedBlock)
                else [content]
                if content
                else []
            )
            places.update({node.number: place for node in inside})
        wanted = {
            (places[makers[name]], places[node.number], name)
            for node in around.graph.nodes
            for name in node.reads
            if node.number in places and makers.get(name) in places
        }
        drawn = {
            (link.start, link.end, name)
            for link in diagram.links
            for name in link.values
            if diagram.items[link.start].content and diagram.items[link.end].content
        }
        assert drawn == {each for each in wanted if each[0] != each[1]}


def test_unfolded_pictures_have_no_boxes_that_overlap_and_lines_that_meet_them():
    around = surroundings(transformer(12))
    top = arrange(unfold(around, around.root, lambda _: True))
    assert len([*all_drawn(top)]) > 3
    for drawn in all_drawn(top):
        for one, other in itertools.combinations(drawn.layout.boxes, 2):
            assert (
                one.x + one.width <= other.x
                or other.x + other.width <= one.x
                or one.y + one.height <= other.y
                or other.y + other.height <= one.y
            )
        for link in drawn.diagram.links:
            corners = drawn.layout.lines[link.start, link.end]
            start, end = (drawn.layout.boxes[n] for n in (link.start, link.end))
            assert start.x <= corners[0][0] <= start.x + start.width
            assert end.x <= corners[-1][0] <= end.x + end.width
        for n, inner in drawn.inside.items():  # lines go on where the frame was met
            frame = drawn.layout.boxes[n]
            shift = frame.x + (frame.width - inner.layout.width) / 2
            meets = {
                round(drawn.layout.lines[link.start, link.end][-1][0], 1)
                for link in drawn.diagram.links
                if link.end == n
            }
            goes_on = {
                round(shift + box.x + box.width / 2, 1)
                for item, box in zip(inner.diagram.items, inner.layout.boxes, strict=True)
                if item.kind == "input"
            }
            assert meets <= goes_on


def test_a_12_layer_transformer_is_one_picture_with_its_layer_once():
    root = ET.fromstring(lone_svg(transformer(12), label="t"))
    assert float(root.get("height", "")) < 1700
    assert float(root.get("width", "")) < 1200
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert texts.count("encoder.layer.0 … 11") == 1
    assert "\u00d7 12" in texts
    assert "f32[batch, 32]" in texts


def test_the_same_model_gives_the_same_bytes():
    assert model_svg(transformer(6)) == model_svg(transformer(6))


def test_names_are_text_and_nothing_else():
    nodes = [
        helper.make_node(
            HOSTILE.replace("\x00", ""), ["x", f"{HOSTILE}.weight"], [HOSTILE], name=HOSTILE
        ),
        helper.make_node("Relu", [HOSTILE], ["y"]),
    ]
    model = model_of(nodes, [weight(f"{HOSTILE}.weight", 4, 4)])
    svg = lone_svg(model, label=HOSTILE)
    assert "<script" not in svg
    root = ET.fromstring(svg)  # no XML otherwise
    assert root.get("aria-label") == HOSTILE.replace("\x00", "\ufffd").replace(
        "\x1b", "\ufffd"
    ).replace("\u202e", "\ufffd")
    assert not [*root.iter(f"{SVG}script")]


NODES = [
    {"name": "a", "measured": True, "cosine_mean": 0.75},
    {"name": "b", "measured": True, "cosine_mean": 1.0},
    {"name": "c", "measured": False},
]


def test_losses_are_read_by_cosine_and_by_drop(tmp_path):
    path = tmp_path / "sensitivity.json"
    blocks = [{"name": "layer.0", "cosine_mean": 0.5}]
    path.write_text(json.dumps({"ranked_by": "cosine_mean", "nodes": NODES, "blocks": blocks}))
    heat = read_heat(path)
    assert (heat.nodes, heat.blocks) == ({"a": 0.25, "b": 0.0}, {"layer.0": 0.5})
    assert heat.measure == "1 - mean cosine"
    dropped = [{**each, "drop": 0.125} for each in NODES]
    path.write_text(json.dumps({"ranked_by": "m:score", "nodes": dropped, "blocks": []}))
    heat = read_heat(path)
    assert (heat.nodes, heat.measure) == ({"a": 0.125, "b": 0.125}, "drop of m:score")
    noisy = [{**each, "sqnr_db": db} for each, db in zip(NODES, (20.0, None, 1.0), strict=True)]
    path.write_text(json.dumps({"ranked_by": "sqnr_db", "nodes": noisy, "blocks": []}))
    heat = read_heat(path)
    assert (heat.nodes, heat.measure) == ({"a": 0.01, "b": 0.0}, "noise to signal")


@pytest.mark.parametrize("text", ["", '{"ranked_by": "x", "nodes": [{}], "blocks": []}'])
def test_what_is_no_report_is_refused(tmp_path, text):
    path = tmp_path / "sensitivity.json"
    path.write_text(text)
    with pytest.raises(StepError, match=r"sensitivity\.json is not a sensitivity report"):
        read_heat(path)


def precisions(model) -> list[str]:
    return [node.precision for node in read_graphs(model)[0].nodes]


def scalar(name: str, value: float, dtype: str):
    return numpy_helper.from_array(np.asarray(value, dtype), name)


def test_floats_are_what_they_are():
    half = weight("half", 32, 32, dtype="float16")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Cast", ["a"], ["b"], to=TensorProto.FLOAT16),
        helper.make_node("MatMul", ["b", "half"], ["c"]),
        helper.make_node("Shape", ["c"], ["d"]),
        helper.make_node("Cast", ["c"], ["y"], to=TensorProto.FLOAT),
    ]
    assert precisions(model_of(nodes, [weight("w", 32, 32), half])) == [
        "fp32", "fp16", "fp16", "other", "fp32"
    ]  # fmt: skip


def test_dynamic_int8():
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z"], ["i"]),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "s"], ["y"]),
    ]
    found = precisions(model_of(nodes, [weight("w", 32, 32, dtype="int8")]))
    assert found == ["int8", "int8", "fp32", "fp32"]


def test_a_node_between_dequantized_values_is_in_eight_bits():
    held = [
        weight("w", 32, 32, dtype="int8"), scalar("s", 1, "float32"),
        scalar("z", 0, "uint8"), scalar("wz", 0, "int8"),
    ]  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "s", "wz"], ["dw"]),
        helper.make_node("MatMul", ["d", "dw"], ["m"]),
        helper.make_node("Relu", ["m"], ["y"]),
    ]
    assert precisions(model_of(nodes, held)) == ["int8", "int8", "int8", "int8", "fp32"]


@pytest.mark.parametrize(("bits", "expected"), [(4, "int4"), (8, "int8")])
def test_weights_in_blocks_of_few_bits(bits, expected):
    node = helper.make_node(
        "MatMulNBits",
        ["x", "w", "s"],
        ["y"],
        domain="com.microsoft",
        K=32,
        N=32,
        bits=bits,
        block_size=32,
    )
    model = model_of([node], [weight("w", 32, 1, 16, dtype="uint8"), weight("s", 32)])
    assert precisions(model) == [expected]
    assert f'class="box {expected}"' in lone_svg(model, label="t")


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("float64", "fp32"), ("float4e2m1", "int4"), ("string", "other")],
)  # fmt: skip
def test_rarer_ones_are_shown_as_the_nearest(dtype, expected):
    assert of_dtype(dtype) == expected
