"""PyTorch operators as single nodes of a custom domain, by both exporters."""

import numpy as np
import onnx
import pytest
import torch

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.export.exporters import EXPORTERS, ExportRequest, export_graph
from onnxbuild.onnxkit.operators.opaque_nodes import opaque_nodes

SPACE = "onnxbuild_tests"


@torch.library.custom_op(f"{SPACE}::many", mutates_args=())
def many(  # noqa: PLR0917 - as many as there are types
    x: torch.Tensor,
    scale: float,
    rows: list[torch.Tensor],
    bias: torch.Tensor | None = None,
    more: torch.Tensor | None = None,
    count: int = 3,
    flag: bool = False,
    mode: str = "a",
    sizes: list[int] | None = None,
    limit: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    return x * scale, x + 1


@many.register_fake
def _(x, *_, **__):
    return torch.empty_like(x), torch.empty_like(x)


@torch.library.custom_op(f"{SPACE}::in_place", mutates_args=("x",))
def in_place(x: torch.Tensor) -> None:
    x += 1


@torch.library.custom_op(f"{SPACE}::typed", mutates_args=())
def typed(x: torch.Tensor, where: torch.device) -> torch.Tensor:
    return x.clone()


@torch.library.custom_op(f"{SPACE}::counted", mutates_args=())
def counted(x: torch.Tensor) -> int:
    return 1


class Net(torch.nn.Module):
    def forward(self, x):
        made, other = torch.ops.onnxbuild_tests.many(
            x, 0.5, [x, x], more=x * 2, flag=True, sizes=[4, 5]
        )
        return made + other


@torch.library.custom_op(f"{SPACE}::lone", mutates_args=())
def lone(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@lone.register_fake
def _(x):
    return torch.empty_like(x)


class Lone(torch.nn.Module):
    def forward(self, x):
        return torch.ops.onnxbuild_tests.lone(x)


def request(folder, module, **nodes):
    return ExportRequest(
        module=module.eval(),
        inputs=(DummyInput("x", "float32", ("batch", 4)),),
        axes=(Axis("batch", 1, 8, 3),),
        feeds={"x": np.ones((3, 4), np.float32)},
        output_names=("y",),
        opset=18,
        constant_folding=True,
        translations={},
        scratch=folder,
        where="m:export",
        opaque=opaque_nodes(nodes, "m:export"),
    )


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_tensors_become_inputs_and_the_rest_attributes(tmp_path, exporter):
    asked = request(tmp_path, Net(), **{f"{SPACE}::many": "mylib.example::Many@2"})
    model, _ = export_graph(exporter, asked)
    onnx.checker.check_model(model)
    (node,) = [each for each in model.graph.node if each.domain]
    assert (node.domain, node.op_type, len(node.output)) == ("mylib.example", "Many", 2)
    assert list(node.input[:3]) == ["x", "x", "x"]
    assert node.input[3] == ""
    assert len(node.input) == 5
    attributes = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    assert attributes == {
        "scale": 0.5, "count": 3, "flag": 1, "mode": b"a", "sizes": [4, 5],
    }  # fmt: skip
    assert {each.domain: each.version for each in model.opset_import}["mylib.example"] == 2


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_without_a_node_or_a_translation_the_error_says_what_to_write(tmp_path, exporter):
    with pytest.raises(StepError) as caught:
        export_graph(exporter, request(tmp_path, Lone()))
    error = caught.value
    assert (
        error.what
        == f"the {exporter} exporter can't translate your operator '{SPACE}::lone' to ONNX"
    )
    assert "test_opaque_nodes.py:" in error.where
    assert "`export: {translations: FILE.py:CALLABLE}`" in error.fix
    assert f"{{torch.ops.{SPACE}.lone.default: FUNCTION}}" in error.fix
    assert f'nodes: {{"{SPACE}::lone": "DOMAIN::NAME"}}' in error.fix


@pytest.mark.parametrize(
    ("operator", "what", "fix"),
    [
        (
            "mani",
            "which PyTorch does not have once the model is loaded",
            f"did you mean '{SPACE}::many'?",
        ),
        ("in_place", "changes its argument `x` in place", "let it return the new tensor"),
        ("counted", "returns int; a node gives tensors", "let it return a tensor"),
    ],
)
def test_what_no_node_can_be_is_refused(operator, what, fix):
    with pytest.raises(StepError) as caught:
        opaque_nodes({f"{SPACE}::{operator}": "mylib.example::Node"}, "m:export")
    assert what in caught.value.what
    assert fix in caught.value.fix
