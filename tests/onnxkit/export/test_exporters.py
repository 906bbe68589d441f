import logging
import warnings

import numpy as np
import pytest
import torch

from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.export.exporters import (
    EXPORTERS,
    ExportRequest,
    explain_specialization,
    export_graph,
)
from onnxbuild.onnxkit.host.progress import listen


class Chatty(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = torch.nn.Dropout(0.5)
        self.x = torch.nn.Parameter(torch.ones(4))

    def forward(self, x):
        warnings.warn("mind the gap", UserWarning, stacklevel=1)
        if x.shape[0] > 0:
            x = self.dropout(x + self.x)
        return x


class Fixed(torch.nn.Module):
    def forward(self, x):
        return x + torch.ones(int(x.shape[0]) if int(x.shape[0]) == 3 else 1, 4)


def request(module, tmp_path):
    return ExportRequest(
        module=module.eval(),
        inputs=(DummyInput("x", "float32", ("batch", 4)),),
        axes=(Axis("batch", 1, 8, 3),),
        feeds={"x": np.ones((3, 4), np.float32)},
        output_names=("y",),
        opset=18,
        constant_folding=True,
        translations={},
        scratch=tmp_path,
        where="m:export",
    )


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_an_export_is_quiet_and_leaves_torch_as_it_was(tmp_path, exporter, capsys):
    module = Chatty()
    level = logging.getLogger("torch.onnx").level
    model, _ = export_graph(exporter, request(module, tmp_path))
    assert capsys.readouterr().out == ""
    assert logging.getLogger("torch.onnx").level == level
    assert not module.training
    assert "Dropout" not in {node.op_type for node in model.graph.node}


def test_an_export_says_which_phase_it_is_in(tmp_path):
    heard: list[str] = []
    listen(lambda done, total, unit, note: heard.append(note))
    try:
        for exporter in EXPORTERS:
            export_graph(exporter, request(Chatty(), tmp_path))
    finally:
        listen(None)
    assert list(dict.fromkeys(heard)) == [
        "dynamo: tracing",
        "dynamo: decomposing",
        "dynamo: translating to ONNX",
        "dynamo: folding constants",
        "torchscript: tracing and translating to ONNX",
    ]


@pytest.mark.parametrize(
    "exporter", [pytest.param("dynamo", marks=pytest.mark.slow), "torchscript"]
)
def test_a_weight_may_be_called_like_an_input(tmp_path, exporter):
    model, _ = export_graph(exporter, request(Chatty(), tmp_path))
    assert [value.name for value in model.graph.input] == ["x"]
    names = {tensor.name for tensor in model.graph.initializer}
    assert "x" not in names
    assert len(names) == 1


def test_torchscript_says_what_it_froze(tmp_path):
    _, remarks = export_graph("torchscript", request(Fixed(), tmp_path))
    assert remarks
    assert all(each.startswith("traced as a constant at test_exporters.py:") for each in remarks)


def test_torchs_own_words_on_a_specialized_axis_are_found(tmp_path):
    said = explain_specialization(request(Fixed(), tmp_path))
    assert said == (
        "You marked batch as dynamic but your code specialized it to be a constant (3)"
    )
    assert explain_specialization(request(Chatty(), tmp_path)) == ""
