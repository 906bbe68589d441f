"""`onnxbuild diagnose`: the step, the nodes, and the YAML that mends a variant."""

from __future__ import annotations

import json

import pytest
import yaml

pytestmark = pytest.mark.slow

OUTLIER = """
import torch


def load():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(16, 16) for _ in range(4)]
    with torch.no_grad():  # the third's weights span too much for one scale
        layers[1].weight[0] *= 1e-4
        layers[1].bias[0] = 0
        layers[2].weight[:, 0] = 1e3
    return torch.nn.Sequential(
        layers[0], torch.nn.Tanh(), layers[1], torch.nn.Tanh(), layers[2], torch.nn.Tanh(), layers[3]
    )
"""
OVERFLOW = """
import torch


class Large(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = torch.nn.Linear(16, 16), torch.nn.Linear(16, 2)

    def forward(self, input):
        large = torch.exp(torch.tanh(self.first(input)) * 2 + 11)
        # CPUs run Exp in fp32, which hides the overflow; operators with fp16 kernels do not
        turned = large.reshape(-1, 4, 4).transpose(1, 2).flatten(1)
        return self.last(turned / 60000.0)


def load():
    return Large()
"""


def make(project, model, quantization):
    project.write("models/tiny.py", model)
    project.edit("tiny.yaml", "shape: [batch, 4]", "shape: [batch, 16]")
    project.edit("tiny.yaml", "quantization: {fp32: none}\n", quantization)
    return project


def pasted(out):
    """The YAML that the output ends in."""
    return yaml.safe_load(out[out.rindex("\nquantization:") :])["quantization"]


@pytest.fixture
def outlier(project):
    return make(
        project,
        OUTLIER,
        "quantization:\n"
        "  fp32: none\n"
        "  int8:\n"
        "    mode: dynamic\n"
        "    per_channel: false\n"
        "    validate: {cosine_min: 0.99}\n",
    )


def test_the_node_whose_weights_8_bits_can_not_hold_is_found_and_the_yaml_mends_it(outlier):
    assert outlier.run("--only", "int8/validate").code == 3
    told = outlier("diagnose", "tiny.yaml:int8")
    assert told.code == 0, told.out + told.err
    assert "tiny:int8/validate fails: cosine" in told.out
    assert "first step where the error appears: tiny:int8/quantize (quantize-dynamic)" in told.out
    assert "the least that passes: 1 node in fp32; paste this:" in told.out
    nodes = pasted(told.out)["int8"]["nodes_to_exclude"]
    assert len(nodes) == 1
    setting = f"quantization.int8.nodes_to_exclude={json.dumps(nodes)}"
    again = outlier.run("--only", "int8/validate", "--set", setting)
    assert again.code == 0
    assert again.ran == []  # the trial was this very build
    found = json.loads(outlier("diagnose", "tiny.yaml:int8", "--json").out)
    assert found["fault"] == "tiny:int8/quantize"
    assert found["yaml"][-1].strip() == f'- "{nodes[0]}"'


def test_values_beyond_fp16_are_named_and_kept_in_fp32(project):
    make(project, OVERFLOW, "quantization: {half: fp16}\n")
    told = project("diagnose", "tiny.yaml:half")
    assert told.code == 0, told.out + told.err
    assert "first node with values lost: " in told.out
    assert " inf" in told.out
    assert "first step where the error appears: tiny:half/convert (convert-fp16)" in told.out
    assert "passes: " in told.out
    assert pasted(told.out)["half"]["mode"] == "fp16"  # the recipe has it in short
    nodes = pasted(told.out)["half"]["node_block_list"]
    assert any("exp" in name.lower() for name in nodes)


def test_a_variant_that_passes_is_looked_at_and_nothing_is_tried(outlier):
    told = outlier(
        "diagnose", "tiny.yaml:int8", "--set", "quantization.int8.validate.cosine_min=0"
    )
    assert told.code == 0, told.out + told.err
    assert "every gate passes" in told.out
    assert "not tried by building; the worst nodes to leave in fp32:" in told.out
    assert "\ntry " not in told.out


def test_a_variant_that_is_not_there_is_a_usage_error(project):
    told = project("diagnose", "tiny.yaml:fp23")
    assert told.code == 2
    assert "there is no variant 'fp23'; there are fp32" in told.err
    assert "did you mean 'fp32'?" in told.err
