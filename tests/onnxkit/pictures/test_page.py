"""The page of a model: small, the same again, accessible, nothing asked of any server; its table adds up."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from onnx import helper

from onnxbuild.onnxkit.drawing.markup import PAGE_MAX_BYTES
from onnxbuild.onnxkit.model.inspect import summarize
from onnxbuild.onnxkit.pictures.diagram import Heat
from onnxbuild.onnxkit.pictures.page import Pictures, model_page
from tests.browser import assert_good, look_at
from tests.onnxkit.pictures.models import branching, model_of, transformer

MODULES = Path(__file__).parents[3] / ".servers/npm"
HEAT = Heat({"hot": 0.5, "cold": 0.01}, {"model.encoder.layer.0": 0.7}, "1 - mean cosine")


def test_the_same_model_gives_the_same_page():
    assert model_page(transformer(), "t", 9) == model_page(transformer(), "t", 9)


def test_every_link_leads_to_a_block_that_is_there():
    page = model_page(transformer(), "t", 9)
    there = set(re.findall(r'id="([^"]+)"', page))
    led_to = set(re.findall(r'href="#([^"]+)"', page))
    assert led_to <= there
    assert len(led_to) > 5


def test_the_table_adds_up_to_what_inspect_says():
    for model in (transformer(4), branching()):
        said = summarize(model)
        pictures = Pictures(model)
        whole = next(iter(pictures.rows())).found
        unread = sum(each.parameters for each in pictures.unread())
        assert whole.nodes == said["nodes"]
        assert whole.parameters + unread == said["parameters"]
        assert whole.operators == said["operators"]


def test_branches_and_functions_can_be_opened():
    page = model_page(branching(), "t", 9)
    assert "If chooser: then_branch" in page
    body = helper.make_node("Relu", ["a"], ["b"])
    double = helper.make_function(
        "own", "Twice", ["a"], ["b"], [body], [helper.make_opsetid("", 18)]
    )
    call = helper.make_node("Twice", ["x"], ["y"], domain="own")
    page = model_page(model_of([call], functions=[double], domains=["own"]), "t", 9)
    assert "function Twice" in page
    assert re.search(r'<a href="#f\d+">', page)


def test_heat_is_shown_by_node_block_and_in_the_table():
    model = transformer(2)
    model.graph.node[2].name, model.graph.node[4].name = "hot_quant", "cold"
    page = model_page(model, "t", 9, heat=HEAT)
    assert "most sensitive node hot_quant: 1 - mean cosine 0.5" in page
    assert 'fill-opacity="1.00"' in page
    assert "sensitivity: 1 - mean cosine, one node in few bits; the worst 0.5" in page
    assert '<th scope="col" class="n">Sensitivity</th>' in page
    assert "Sensitivity</th>" not in model_page(transformer(2), "t", 9)


def test_the_page_of_a_large_model_stays_small():
    """200 layers that all differ, so that nothing is folded: 3,600 nodes; its time: benchmarks/graph_passes.py."""
    model = transformer(200, named=True)
    kinds = ["Relu", "Tanh", "Abs", "Neg", "Exp", "Sigmoid", "Softplus"]
    for n, node in enumerate(
        each for each in model.graph.node if each.op_type in ("Relu", "Softmax")
    ):
        node.op_type = kinds[(n * n + n // 7) % len(kinds)]
    page = model_page(model, "t", 9)
    assert len(page.encode()) < PAGE_MAX_BYTES
    assert "not drawn, to keep the page small" in page
    there = set(re.findall(r'id="([^"]+)"', page))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= there


@pytest.mark.slow
def test_the_page_is_good_in_a_browser(tmp_path):
    pages = {
        "named": transformer(12),
        "unnamed": transformer(12, named=False),
        "branching": branching(),
    }
    for name, model in pages.items():
        model.graph.node[1].name = "hot"
        (tmp_path / f"{name}.html").write_text(model_page(model, name, 9, heat=HEAT))
    assert_good(look_at([tmp_path / f"{name}.html" for name in pages], tmp_path))


@pytest.mark.slow
def test_a_box_opens_its_block_by_keyboard_and_by_mouse(tmp_path):
    page = tmp_path / "t.html"
    page.write_text(model_page(transformer(12), "t", 9))
    look_at([page], tmp_path)  # skips, or fails, where there is no browser
    script = Path(__file__).parents[2] / "npm/follow.mjs"
    done = subprocess.run(
        ["node", script, MODULES, shutil.which("chromium") or "chromium-browser", page.as_uri()],
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    by_keyboard, by_mouse = json.loads(done.stdout)
    assert by_keyboard["focused"] != by_mouse["focused"]
    for each in (by_keyboard, by_mouse):
        assert each["focused"].startswith(each["wanted"])
        assert each["closed"] == 0
