"""Pictures as SVG: what is connected in the graph is connected there, and all text is only text."""

from __future__ import annotations

import itertools
from xml.etree import ElementTree as ET

import pytest
from onnx import helper

from onnxbuild.onnxkit.pictures.diagram import Surroundings, draw, unfold
from onnxbuild.onnxkit.pictures.folding import FoldedBlock, fold
from onnxbuild.onnxkit.pictures.nodes import read_graphs
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
