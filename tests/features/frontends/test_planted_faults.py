"""Each source's gate catches a wrong weight, swapped outputs and a shifted class; each gives the same bytes elsewhere."""

import shutil
import warnings
from functools import partial
from pathlib import Path

import lightgbm
import numpy as np
import onnx
import pytest
import torch
import xgboost
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_iris

import onnxbuild
from onnxbuild.core.step import MODEL_FILE
from onnxbuild.diagnosis.measurements import artifacts_shown
from onnxbuild.onnxkit.model.model_files import load_model
from onnxbuild.steps import validate
from tests import tiny_keras, tiny_transformers
from tests.fakes.step_context import run_step
from tests.fork_servers import warm_steps
from tests.onnxkit import models

pytestmark = pytest.mark.slow

INPUT = "dummy_inputs: {x: {dtype: float32, shape: [batch, 8]}}\n"
SOURCES = {
    "onnx": "model: {onnx: m.onnx}\n",
    "exported": "model: {exported: m.pt2}\n",
    "torchscript": "model: {torchscript: m.pt}\n" + INPUT,
    "keras": "model: {keras: m.keras}\n",
    "transformers": "model: {transformers: bert}\nexport: {exporter: torchscript}\n",
    "xgboost": "model: {xgboost: m.ubj}\nreference: {samples: {entrypoint: rows.py:rows, files: [rows.npy]}}\n",
    "lightgbm": "model: {lightgbm: m.txt}\nreference: {samples: {entrypoint: rows.py:rows, files: [rows.npy]}}\n",
}
"""Those of scikit-learn are in test_estimators.py."""

ROWS = """
import numpy as np

def rows():
    for each in np.array_split(np.load("rows.npy"), 10):
        yield {"features": each}
"""


class Two(torch.nn.Module):
    """Scores of four classes from two heads."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = torch.nn.Linear(8, 4), torch.nn.Linear(8, 4)

    def forward(self, x):
        return self.first(x), torch.relu(self.second(x))


def two_heads():
    """The same as ONNX."""
    random = np.random.default_rng(0)
    weights = [
        models.weight(name, random.standard_normal((8, 4)).astype(np.float32)) for name in "vw"
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["first"]),
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Relu", ["product"], ["second"]),
    ]
    outputs = [models.value(name, ["batch", 4]) for name in ("first", "second")]
    return models.model(nodes, [models.value("x", ["batch", 8])], outputs, weights)


def write_models(folder: Path) -> None:
    onnx.save(two_heads(), folder / "m.onnx")
    batch = {"x": {0: torch.export.Dim("batch", max=8)}}
    program = torch.export.export(Two().eval(), (torch.randn(2, 8),), dynamic_shapes=batch)
    torch.export.save(program, folder / "m.pt2")
    with warnings.catch_warnings(action="ignore"):  # TorchScript is deprecated; Keras and NumPy 2
        torch.jit.script(Two().eval()).save(str(folder / "m.pt"))
        tiny_keras.saved(folder / "m.keras", tiny_keras.two)
    bert = partial(tiny_transformers.bert, "BertForQuestionAnswering")
    tiny_transformers.saved(folder / "bert", bert)
    rows, labels = load_iris(return_X_y=True)
    trees = xgboost.XGBClassifier(n_estimators=5, n_jobs=1).fit(rows, labels)
    trees.save_model(folder / "m.ubj")
    light = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1).fit(rows, labels)
    light.booster_.save_model(folder / "m.txt")
    np.save(folder / "rows.npy", rows[1::3].astype(np.float32))
    (folder / "rows.py").write_text(ROWS)


def request_of(folder: Path, step: str, sources=tuple(SOURCES)) -> onnxbuild.Request:
    (folder / "pyproject.toml").write_text("")
    paths = []
    for name in sources:
        paths.append(folder / f"{name}.yaml")
        paths[-1].write_text(f"version: 1\nname: {name}\n{SOURCES[name]}")
    return onnxbuild.Request(tuple(paths), only=tuple(f"{name}:{step}" for name in sources))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Source -> (folder of its model, of its reference, params of its gate); then the project."""
    project = tmp_path_factory.mktemp("planted")
    write_models(project)
    request = request_of(project, "fp32/validate")
    with warm_steps():
        result = onnxbuild.build(request)
    assert result.exit_code == 0, result.report.failures
    gates = {name: result.graph.steps[f"{name}:fp32/validate"] for name in SOURCES}
    parts = [ref.step for gate in gates.values() for ref in gate.inputs.values()]
    with artifacts_shown(request, result, parts) as folders:
        yield (
            {
                name: ({key: folders[ref.step] for key, ref in gate.inputs.items()}, gate.params)
                for name, gate in gates.items()
            },
            project,
        )


def judged(inputs, params, folder):
    outcome, _ = run_step(validate.KIND, params, folder, inputs)
    return [each.what for each in outcome.findings]


def wrong_weight(model):
    """One weight of the last layer; of trees the leaves of the first."""
    for node in model.graph.node:
        for each in node.attribute:
            if each.name in ("class_weights", "target_weights"):
                each.floats[:] = [
                    value + 0.1 * (number < 8) for number, value in enumerate(each.floats)
                ]
                return
    floats = [each for each in model.graph.initializer if each.data_type == TensorProto.FLOAT]
    last = next(each for each in reversed(floats) if len(each.dims) == 2)
    array = numpy_helper.to_array(last).copy()
    array[0, 0] += 0.05
    last.CopyFrom(numpy_helper.from_array(array, last.name))


def swapped_outputs(model):
    """The first two, each under the other's name."""
    first, second = model.graph.output[:2]
    other = {first.name: second.name, second.name: first.name}
    for node in model.graph.node:
        node.output[:] = [other.get(name, name) for name in node.output]
        node.input[:] = [other.get(name, name) for name in node.input]
    first.name, second.name = second.name, first.name


def shifted_class(model):
    """A label one too great; scores one place further."""
    output = model.graph.output[0]
    for node in model.graph.node:
        node.output[:] = ["before" if name == output.name else name for name in node.output]
    kind = output.type.tensor_type.elem_type
    if kind == TensorProto.INT64:
        one = helper.make_node("Constant", [], ["one"], value_int=1)
        model.graph.node.extend([one, helper.make_node("Add", ["before", "one"], [output.name])])
        return
    sizes = {"begin": [1], "end": [1 << 60], "zero": [0], "last": [-1]}
    model.graph.initializer.extend(models.weight(n, np.array(v)) for n, v in sizes.items())
    model.graph.node.extend(
        [
            helper.make_node("Slice", ["before", "begin", "end", "last"], ["planted_rest"]),
            helper.make_node("Slice", ["before", "zero", "begin", "last"], ["planted_first"]),
            helper.make_node("Concat", ["planted_rest", "planted_first"], [output.name], axis=-1),
        ]
    )


@pytest.mark.parametrize("fault", [wrong_weight, swapped_outputs, shifted_class])
@pytest.mark.parametrize("name", SOURCES)
def test_a_planted_fault_is_caught(built, tmp_path, name, fault):
    inputs, params = built[0][name]
    model = load_model(inputs["model"])
    fault(model)
    (tmp_path / "bad").mkdir()
    onnx.save(model, tmp_path / "bad" / MODEL_FILE)
    found = judged({**inputs, "model": tmp_path / "bad"}, params, tmp_path / "gate")
    assert found, f"{fault.__name__} of {name} was not seen"


def test_what_is_planted_is_all_that_the_gates_see(built, tmp_path):
    for name, (inputs, params) in built[0].items():
        assert judged(inputs, params, tmp_path / name) == [], name


@pytest.mark.usefixtures("warm_steps")
def test_another_folder_gives_the_same_bytes(built, tmp_path):
    """Folders of transformers and archives of Keras: see their own tests."""
    for name in ("m.onnx", "m.pt2", "m.pt", "m.ubj", "m.txt", "rows.npy", "rows.py"):
        shutil.copy(built[1] / name, tmp_path)
    sources = ("onnx", "exported", "torchscript", "xgboost", "lightgbm")
    request = request_of(tmp_path, "fp32/check", sources)
    result = onnxbuild.build(request)
    assert result.exit_code == 0, result.report.failures
    checked = {each: result.graph.steps[f"{each}:fp32/check"] for each in sources}
    steps = {name: check.inputs["model"].step for name, check in checked.items()}
    with artifacts_shown(request, result, steps.values()) as folders:
        for name, step in steps.items():
            before = built[0][name][0]["model"] / MODEL_FILE
            assert (folders[step] / MODEL_FILE).read_bytes() == before.read_bytes(), name
