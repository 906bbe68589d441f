"""The plug-in that docs/plugins.md shows works as it is written."""

import json
import re
from pathlib import Path

from onnxbuild.building.request import Request, graph_of
from onnxbuild.catalog import CATALOG
from onnxbuild.plugins.bring import bring_plugins, refuse_faulty
from tests.fakes.step_context import FolderContext
from tests.plugins.fake_distributions import project

PAGE = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text()
RECIPE = """\
version: 1
name: demo
model: model.py:load
dummy_inputs:
  x: {dtype: float32, shape: [1]}
max_size: {bytes: 10}
"""


def block(language: str) -> str:
    """The page's first block in a language."""
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_is_a_gate_with_a_key_of_its_own(tmp_path):
    project(tmp_path, block("python"), name="tools/max_size.py")
    (tmp_path / "pyproject.toml").write_text(block("toml"))
    (tmp_path / "model.py").write_text("def load(): ...\n")
    (tmp_path / "demo.yaml").write_text(RECIPE)
    refuse_faulty(bring_plugins(tmp_path))
    graph = graph_of(Request((tmp_path / "demo.yaml",)))
    step = graph.steps["demo:fp32/max-size"]
    assert step.params_json == {"bytes": 10}
    assert step.location.line == 6
    assert graph.steps["demo:fp32/package"].inputs["gate/max_size"].step == step.name

    model = tmp_path / "model"
    model.mkdir()
    (model / "model.onnx").write_bytes(bytes(11))
    context = FolderContext(step.params, tmp_path / "work", {"model": model})
    outcome = CATALOG[step.kind].run(context)
    assert [each.what for each in outcome.findings] == [
        "the model has 11 bytes; at most 10 are allowed"
    ]
    report = json.loads((context.output("report") / "report.json").read_text())
    assert report == {"passed": False, "size_bytes": 11}


def test_the_example_is_short():
    assert len([line for line in block("python").splitlines() if line.strip()]) <= 40
