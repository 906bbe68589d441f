"""One weight that nodes read in several ways, through every quantizer."""

import functools
import io
import warnings

import numpy as np
import onnx
import pytest

from tests.onnxkit.models import model, value, weight
from tests.steps.graphs import operators
from tests.steps.quantizers import LEAST, WAYS, Case, combinations, dynamic, static

ROWS, WIDTH = 40, 24


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # as a child runs a step


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32) / 2


def multiplying(*nodes, rows, columns, inputs=WIDTH):
    """A model that reads x (n, inputs), weight w (rows, columns) and biases `rows` and `columns`."""
    weights = [
        weight("w", random(rows, columns)), weight("rows", random(rows)),
        weight("columns", random(columns)),
    ]  # fmt: skip
    made = model(
        [onnx.helper.make_node(*each, **options) for each, options in nodes],
        [value("x", ["n", inputs])], [value("y", ["n", "m"])], weights,
    )  # fmt: skip
    return made, [{"x": random(8, inputs, seed=n)} for n in range(3)]


def tied_autoencoder(rows):
    """y = relu(x w^T + rows) w + columns; square or not."""
    return multiplying(
        (("Gemm", ["x", "w", "rows"], ["wide"], "encode"), {"transB": 1}),
        (("Relu", ["wide"], ["clipped"], "clip"), {}),
        (("MatMul", ["clipped", "w"], ["product"], "decode"), {}),
        (("Add", ["product", "columns"], ["y"], "shift"), {}),
        rows=rows, columns=WIDTH,
    )  # fmt: skip


def tied_gemms():
    """The same, both of them Gemms."""
    return multiplying(
        (("Gemm", ["x", "w", "rows"], ["wide"], "encode"), {"transB": 1}),
        (("Relu", ["wide"], ["clipped"], "clip"), {}),
        (("Gemm", ["clipped", "w", "columns"], ["y"], "decode"), {}),
        rows=ROWS, columns=WIDTH,
    )  # fmt: skip


def repeated():
    """One layer twice, as an unrolled recurrence has it."""
    return multiplying(
        (("Gemm", ["x", "w", "rows"], ["once"], "first"), {"transB": 1}),
        (("Relu", ["once"], ["clipped"], "clip"), {}),
        (("Gemm", ["clipped", "w", "rows"], ["y"], "second"), {"transB": 1}),
        rows=WIDTH, columns=WIDTH,
    )  # fmt: skip


def looked_up_last():
    """y = x w + w[0]: a table that is multiplied with before it is looked up in."""
    return multiplying(
        (("MatMul", ["x", "w"], ["scores"], "score"), {}),
        (("Constant", [], ["first"], "constant"), {"value_int": 0}),
        (("Gather", ["w", "first"], ["row"], "look_up"), {}),
        (("Add", ["scores", "row"], ["y"], "add"), {}),
        rows=WIDTH, columns=WIDTH,
    )  # fmt: skip


@functools.cache
def exported():
    """By dynamo: a tied autoencoder between a table and the head that shares it, with a bias, from PyTorch."""
    import torch

    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(ROWS, WIDTH)
            self.encode = torch.nn.Linear(WIDTH, WIDTH)
            self.head = torch.nn.Linear(WIDTH, ROWS)
            self.head.weight = self.table.weight

        def forward(self, ids):
            hidden = torch.relu(self.encode(self.table(ids)))
            return self.head(torch.relu(hidden @ self.encode.weight))

    torch.manual_seed(0)
    ids = torch.randint(0, ROWS, (9,))
    target = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporters' own
        torch.onnx.export(
            Tied().eval(), (ids,), target, dynamo=True, opset_version=18, input_names=["ids"],
            output_names=["y"], external_data=False, verbose=False,
        )  # fmt: skip
    return onnx.load_model_from_string(target.getvalue()), [{"ids": ids.numpy()}] * 3


CASES = {
    "a square tied autoencoder": lambda: tied_autoencoder(WIDTH),
    "a tied autoencoder": lambda: tied_autoencoder(ROWS),
    "tied gemms": tied_gemms,
    "one layer twice": repeated,
    "a table looked up last": looked_up_last,
    "dynamo": exported,
}


@pytest.mark.parametrize(("name", "way"), combinations(CASES))
def test_a_weight_read_in_two_ways_keeps_its_value_for_both(tmp_path, name, way):
    case = Case(tmp_path, *CASES[name]())
    assert case.cosine(WAYS[way](case)) > LEAST[way]


def test_a_layer_that_is_used_often_is_kept_once(tmp_path):
    case = Case(tmp_path, *repeated())
    target = dynamic(case)
    assert operators(target)["MatMulInteger"] == 2
    codes = [
        each
        for each in onnx.load(target / "model.onnx").graph.initializer
        if "_quant" in each.name
    ]
    assert [list(each.dims) for each in codes] == [[WIDTH, WIDTH]]


def test_a_node_that_stays_in_fp32_reads_the_weight_as_it_was(tmp_path):
    case = Case(tmp_path, *tied_gemms())
    given = {each.name: each for each in onnx.load(case.source / "model.onnx").graph.initializer}
    for per_channel in (True, False):
        folder = tmp_path / f"{per_channel}"
        folder.mkdir()
        again = Case(folder, *tied_gemms())
        target = static(again, per_channel=per_channel, nodes_to_exclude=("decode",))
        graph = onnx.load(target / "model.onnx").graph
        (node,) = (node for node in graph.node if node.name == "decode")
        held = {each.name: each for each in graph.initializer}
        assert held[node.input[1]].raw_data == given["w"].raw_data
