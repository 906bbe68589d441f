"""What the gate's fix knows of a variant: its mode's options, and whether its tolerances are its own."""

from onnxbuild.host.host import HostFacts
from onnxbuild.resolver import resolve
from tests.written_recipes import loader

RECIPE = """\
version: 1
name: demo
model: model.py:load
dummy_inputs: {ids: {dtype: int64, shape: [batch], high: 10}}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
validate: {int8: {cosine_min: 0.9}}
ahead_of_time: {ort: {}}
quantization:
  fp32: none
  int8: dynamic
  small: {mode: weight_only, bits: 8, validate: {cosine_min: 0.95}}
"""


def test_a_gate_knows_its_variant_s_options_and_whose_tolerances_are_in_force(tmp_path):
    load = loader(tmp_path, before=RECIPE)
    steps = resolve(load("").recipes, HostFacts("x86_64", frozenset())).steps
    for name, owner, has, lacks in (
        ("fp32", "", set(), {"per_channel"}),
        ("int8", "", {"per_channel", "nodes_to_exclude"}, {"block_size"}),
        ("small", "small", {"block_size", "nodes_to_exclude"}, {"per_channel"}),
    ):
        for judged in (name, f"{name}-ort"):
            params = steps[f"demo:{judged}/validate"].params
            assert params.owner == owner
            assert has <= set(params.options)
            assert not lacks & set(params.options)
