"""Products of experts in both exporters' graphs, for any routing."""

import numpy as np
import pytest
import torch

from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.export.exporters import EXPORTERS, ExportRequest, export_graph
from onnxbuild.onnxkit.export.stable_translations import NOTE

EXPERTS = 3


@pytest.fixture(autouse=True, scope="module")
def _transformers():
    pytest.importorskip("transformers.integrations.moe")


def grouped(rows, experts, ends):
    """As transformers does: torch.export takes PyTorch's operator for bfloat16 alone."""
    if torch.compiler.is_exporting():
        return torch.ops.transformers.grouped_mm_fallback(rows, experts, ends)
    return torch.nn.functional.grouped_mm(rows, experts, offs=ends)


class Routed(torch.nn.Module):
    """Each row times the matrix of the expert that its number names."""

    def __init__(self):
        super().__init__()
        self.experts = torch.nn.Parameter(torch.randn(EXPERTS, 4, 8))

    def forward(self, x, expert):
        sorted_experts, order = torch.sort(expert)
        counts = torch.histc(sorted_experts.float(), bins=EXPERTS, min=0, max=EXPERTS - 1)
        ends = torch.cumsum(counts, dim=0, dtype=torch.int32)
        products = grouped(x[order], self.experts, ends)
        back = torch.empty_like(order)
        back[order] = torch.arange(order.shape[0])
        return products[back]


class InGivenGroups(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = torch.nn.Parameter(torch.randn(EXPERTS, 4, 8))

    def forward(self, x, ends):
        return grouped(x, self.experts, ends)


def exported(module, inputs, feeds, tmp_path, exporter, *, opset=18):
    import onnxruntime

    request = ExportRequest(
        module=module.eval(),
        inputs=inputs,
        axes=(Axis("rows", 2, 64, 6),),
        feeds=feeds,
        output_names=("y",),
        opset=opset,
        constant_folding=True,
        translations={},
        scratch=tmp_path,
        where="m:export",
    )
    model, notes = export_graph(exporter, request)
    return onnxruntime.InferenceSession(model.SerializeToString()), notes


X = DummyInput("x", "float32", ("rows", 4))


def rows(count, seed=0):
    return np.random.default_rng(seed).standard_normal((count, 4), dtype=np.float32)


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_every_routing_gives_pytorchs_numbers(tmp_path, exporter):
    torch.manual_seed(0)
    module = Routed()
    example = {"x": rows(6), "expert": np.asarray([0, 2, 1, 1, 0, 2])}
    inputs = (X, DummyInput("expert", "int64", ("rows",)))
    session, notes = exported(module, inputs, example, tmp_path, exporter)
    assert NOTE in notes
    for experts in ([0, 2, 1, 1, 0, 2], [2] * 9, [0, 0], [1, 2, 1], [0] * 20 + [2]):
        feeds = {"x": rows(len(experts), seed=1), "expert": np.asarray(experts)}
        with torch.no_grad():
            expected = module(*map(torch.from_numpy, feeds.values())).numpy()
        assert np.allclose(session.run(None, feeds)[0], expected, atol=1e-5)


@pytest.mark.parametrize(
    "exporter", [pytest.param("dynamo", marks=pytest.mark.slow), "torchscript"]
)
def test_rows_behind_the_last_group_are_zeros(tmp_path, exporter):
    module = InGivenGroups()
    feeds = {"x": rows(6), "ends": np.asarray([1, 1, 4], np.int32)}
    inputs = (X, DummyInput("ends", "int32", (EXPERTS,)))
    session, _ = exported(module, inputs, feeds, tmp_path, exporter)
    (found,) = session.run(None, feeds)
    with torch.no_grad():
        expected = module(*map(torch.from_numpy, feeds.values())).numpy()
    assert np.allclose(found[:4], expected[:4], atol=1e-5)
    assert not found[4:].any()


def test_the_torchscript_exporter_is_left_as_it_was(tmp_path):
    from torch.onnx._internal.torchscript_exporter.registration import registry

    before = registry.is_registered_op("aten::_grouped_mm", 18)
    inputs = (X, DummyInput("ends", "int32", (EXPERTS,)))
    feeds = {"x": rows(6), "ends": np.asarray([1, 1, 6], np.int32)}
    exported(InGivenGroups(), inputs, feeds, tmp_path, "torchscript")
    assert registry.is_registered_op("aten::_grouped_mm", 18) == before
