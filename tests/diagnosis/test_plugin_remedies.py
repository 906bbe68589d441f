"""Modes and gates of plug-ins get their remedies as this package's own do."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from onnxbuild import catalog
from onnxbuild.building.api import BuildResult
from onnxbuild.building.request import Loaded
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.params import option
from onnxbuild.core.step import Finding, StepKind
from onnxbuild.diagnosis.chain import chain_of, judged_on
from onnxbuild.diagnosis.remedies import keep_in_fp32, kept_nodes
from onnxbuild.engine.report import Failure, Report, gate_error
from onnxbuild.expansion.addresses import of_variant
from onnxbuild.expansion.diagnosis_hints import DiagnosisHints, KeptNodes
from onnxbuild.expansion.feature import Feature, Mode
from onnxbuild.expansion.fused import fused_for
from onnxbuild.expansion.plugin import Plugin
from onnxbuild.host.host import HostFacts
from onnxbuild.onnxkit.accuracy.tolerances import Tolerance
from onnxbuild.recipe.load import load_recipes
from onnxbuild.resolver import resolve
from onnxbuild.terminal.next_commands import next_commands
from tests.cli.conftest import project as built_project
from tests.cli.test_diagnose import OUTLIER, make, pasted

built_project = built_project  # noqa: PLW0127 - a fixture

COARSE = '''\
"""The mode `coarse`: weights on a grid of a few steps up to the largest."""

from dataclasses import dataclass

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.params import option
from onnxbuild.core.step import Outcome, StepKind
from onnxbuild.expansion.addresses import of_variant
from onnxbuild.expansion.diagnosis_hints import KeptNodes
from onnxbuild.expansion.feature import Mode
from onnxbuild.expansion.fused import fused_for
from onnxbuild.onnxkit.accuracy.tolerances import Tolerance


@dataclass(frozen=True)
class CoarseOptions:
    """How coarse the grid is."""

    steps: int = option(100, help="steps from zero to the largest weight", minimum=1)
    spared: tuple[str, ...] = option((), help="nodes whose weights stay as they are")


def run(context):
    """Write the model with its weights on the grid."""
    import numpy as np
    import onnx
    from onnx import numpy_helper

    options = context.params
    model = onnx.load(context.input("model") / "model.onnx")
    spared = {name for node in model.graph.node if node.name in options.spared for name in node.input}
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if tensor.name not in spared and array.ndim == 2:
            step = np.abs(array).max() / options.steps
            rounded = (np.round(array / step) * step).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(rounded, tensor.name))
    onnx.save(model, context.output("model") / "model.onnx")
    return Outcome({})


KIND = StepKind(
    "own-coarse", 1, CoarseOptions, ("model",), {"model": "onnx-model"}, ("onnx", "numpy"), run
)


def model(scope, variant):
    address = of_variant(scope.recipe, variant, "coarsen")
    options = variant.options_as(CoarseOptions)
    return OutputRef(scope.step(address, KIND, options, {"model": fused_for(scope, variant)}), "model")


FEATURE = Mode(
    name="coarse",
    precision="coarse",
    tolerances={"coarse": Tolerance(cosine_min=0.99)},
    options=CoarseOptions,
    kinds=(KIND,),
    model=model,
    kept_nodes=KeptNodes("own-coarse", option="spared"),
)
'''
RECIPE = """\
version: 1
name: x
model: model.py:load
dummy_inputs: {x: {dtype: float32, shape: [batch, 4]}}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
quantization:
  fp32: none
  thin: {mode: thin, whole: [first]}
"""


@dataclass(frozen=True)
class ThinOptions:
    """What stays as it is."""

    whole: tuple[str, ...] = option((), help="nodes that stay as they are")


@dataclass(frozen=True)
class Nothing:
    """No parameters."""


def never(context):
    raise AssertionError(context)


THIN = StepKind("own-thin", 1, ThinOptions, ("model",), {"model": "onnx-model"}, (), never)
JUDGE = StepKind("own-judge", 1, Nothing, ("model",), {"report": "report"}, (), never)


def thin(scope, variant):
    address = of_variant(scope.recipe, variant, "thin")
    inputs = {"model": fused_for(scope, variant)}
    return OutputRef(scope.step(address, THIN, variant.options, inputs), "model")


def judged(scope, subject):
    address = of_variant(scope.recipe, subject.variant, "judge")
    step = scope.step(address, JUDGE, Nothing(), {"model": subject.model})
    return {"gate/own": OutputRef(step, "report")}


MODE = Mode(
    name="thin",
    precision="thin",
    tolerances={"thin": Tolerance(cosine_min=0.9)},
    options=ThinOptions,
    kinds=(THIN,),
    model=thin,
    kept_nodes=KeptNodes("own-thin", option="whole"),
)
GATE = Feature(
    name="own", kinds=(JUDGE,), reports=judged, diagnosis=DiagnosisHints(judges=("own-judge",))
)


@pytest.fixture
def built(tmp_path):
    """The recipe, and its graph."""
    catalog.use_plugins([Plugin("own", "1.0", "own.py", (MODE, GATE))])
    (tmp_path / "model.py").write_text("def load(): ...\n")
    (tmp_path / "file.yaml").write_text(RECIPE)
    (recipe,) = load_recipes(tmp_path / "file.yaml", project=tmp_path).recipes
    return recipe, resolve([recipe], HostFacts("x86_64", frozenset()))


def test_the_option_of_a_plugins_mode_gets_the_nodes_besides_those_that_it_has(built):
    recipe, graph = built
    chain = chain_of(graph, "x", "thin")
    _, variant = recipe.variants
    kept = [kept_nodes(variant, step) for step in chain.models]
    assert kept == [None] * (len(kept) - 1) + [MODE.kept_nodes]
    remedy = keep_in_fp32(recipe, variant, kept[-1], ["third", "first"])
    expected = {"mode": "thin", "whole": ["first", "third"]}
    assert yaml.safe_load("\n".join(remedy.yaml)) == {"quantization": {"thin": expected}}
    assert json.loads(remedy.settings["quantization.thin"]) == expected
    assert remedy.what == "2 nodes in fp32"


def test_a_gate_of_a_plugin_that_judges_outputs_is_one_of_a_variants_gates(built, tmp_path):
    recipe, graph = built
    chain = chain_of(graph, "x", "thin")
    assert [each.name for each in chain.gates] == ["x:thin/judge", "x:thin/validate"]
    assert judged_on(chain, {}, ["x:thin/judge"]).judge == "x:thin/validate"
    report = Report()
    finding = Finding("it is too thin", "", "")
    report.failures = [Failure("x:thin/judge", gate_error("x:thin/judge", (finding,)), 3)]
    loaded = Loaded({Path("file.yaml"): (recipe,)}, {})
    result = BuildResult(3, "run", tmp_path, lambda: (loaded, graph, report))
    assert next_commands(result, {"opset": "17"}, None) == (
        ("to see where it goes wrong", "onnxbuild diagnose file.yaml:thin --set opset=17"),
        ("all verdicts as a page", "onnxbuild report file.yaml --set opset=17"),
    )


@pytest.mark.slow
def test_the_node_that_a_plugins_mode_spoils_is_found_and_the_yaml_mends_it(built_project):
    built_project.write("tools/coarse.py", COARSE)
    built_project.write("pyproject.toml", '[tool.onnxbuild]\nplugins = ["tools/coarse.py"]\n')
    make(built_project, OUTLIER, "quantization: {fp32: none, rough: coarse}\n")
    failing = built_project.run("--only", "rough/validate")
    assert failing.code == 3, failing.out + failing.err
    assert "onnxbuild diagnose tiny.yaml:rough" in failing.err
    found = built_project("diagnose", "tiny.yaml:rough")
    assert found.code == 0, found.out + found.err
    assert "first step where the error appears: tiny:rough/coarsen (own-coarse)" in found.out
    assert "the least that passes: 1 node in fp32; paste this:" in found.out
    assert len(pasted(found.out)["rough"]["spared"]) == 1
    setting = f"quantization.rough={json.dumps(pasted(found.out)['rough'])}"
    mended = built_project.run("--only", "rough/validate", "--set", setting)
    assert mended.code == 0, mended.out + mended.err
