"""`onnxbuild diagnose`: the step, the nodes, and the YAML that mends a variant."""

import json
import re

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
POOR = OUTLIER.replace("= 1e3", "= 40")
"""Far off in 8 bits, and no constant."""
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
    reported = outlier("diagnose", "tiny.yaml:int8")
    assert reported.code == 0, reported.out + reported.err
    assert "tiny:int8/validate fails: cosine" in reported.out
    assert (
        "first step where the error appears: tiny:int8/quantize (quantize-dynamic)" in reported.out
    )
    assert "the least that passes: 1 node in fp32; paste this:" in reported.out
    nodes = pasted(reported.out)["int8"]["nodes_to_exclude"]
    assert len(nodes) == 1
    setting = f"quantization.int8.nodes_to_exclude={json.dumps(nodes)}"
    again = outlier.run("--only", "int8/validate", "--set", setting)
    assert again.code == 0
    assert again.ran == []  # the trial was this very build
    found = json.loads(outlier("diagnose", "tiny.yaml:int8", "--json").out)
    assert found["fault"] == "tiny:int8/quantize"
    assert found["yaml"][-1].strip() == f'- "{nodes[0]}"'


def test_the_run_itself_names_a_node_that_costs_more_than_all_others_and_what_to_write(outlier):
    done = outlier.run("--only", "int8/validate")
    assert done.code == 3
    reported = r"Gemm node '(\S+)' alone makes (\d+\.?\d*) % of the error of variant 'int8' \(worst cosine"
    (name, share) = re.search(reported, done.out).groups()
    assert float(share) > 90
    (line,) = re.findall(r"leave it in fp32 with `(nodes_to_exclude: .*)`", done.out)
    assert name in line
    assert line in outlier.run("--only", "int8/validate").out  # from the cache, too
    outlier.edit("tiny.yaml", "    per_channel: false\n", f"    per_channel: false\n    {line}\n")
    mended = outlier.run("--only", "int8/validate")
    assert mended.code == 0, mended.out + mended.err
    assert "alone makes" not in mended.out


def test_values_beyond_fp16_are_named_and_kept_in_fp32(project):
    make(project, OVERFLOW, "quantization: {half: fp16}\n")
    reported = project("diagnose", "tiny.yaml:half")
    assert reported.code == 0, reported.out + reported.err
    assert "first node with values lost: " in reported.out
    assert " inf" in reported.out
    assert "first step where the error appears: tiny:half/convert (convert-fp16)" in reported.out
    assert "passes: " in reported.out
    assert pasted(reported.out)["half"]["mode"] == "fp16"  # the recipe has it in short
    nodes = pasted(reported.out)["half"]["node_block_list"]
    assert any("exp" in name.lower() for name in nodes)


def test_a_variant_that_passes_is_looked_at_and_nothing_is_tried(outlier):
    outlier.write("models/tiny.py", POOR)
    reported = outlier(
        "diagnose", "tiny.yaml:int8", "--set", "quantization.int8.validate.cosine_min=0"
    )
    assert reported.code == 0, reported.out + reported.err
    assert "every gate passes" in reported.out
    assert "not tried by building; the worst 3 nodes of 4 to leave in fp32:" in reported.out
    assert "\ntry " not in reported.out


def replace_quantization(project, out):
    """The recipe with the pasted YAML in the place of its own."""
    path = project.folder / "tiny.yaml"
    recipe = yaml.safe_load(path.read_text())
    recipe["quantization"] |= pasted(out)
    path.write_text(yaml.safe_dump(recipe, sort_keys=False))


DATA = """
import numpy as np


def feeds():
    generator = np.random.default_rng(7)
    for _ in range(4):
        yield {"input": generator.standard_normal((4, 16)).astype(np.float32)}


def judged():
    for feeds_ in feeds():
        yield feeds_, None


def closeness(outputs, labels):
    return -float(np.mean([np.abs(each["logits"]).mean() for each in outputs]))
"""


@pytest.fixture
def searching(project):
    project.write("models/data.py", DATA)
    return make(
        project,
        OUTLIER,
        "quantization:\n"
        "  small:\n"
        "    mode: auto\n"
        "    trials: 2\n"
        "    include: [dynamic, fp16]\n"
        "    goal: {cosine_min: 0.5}\n"
        "    validate: {cosine_min: 0.99999}\n"
        "fidelity: {data: models/data.py:feeds}\n",
    )


def test_what_a_search_chose_is_looked_at_as_the_trial_that_it_is(searching):
    failing = searching.run("--only", "small/validate")
    assert failing.code == 3, failing.out + failing.err
    assert "to see where it goes wrong: onnxbuild diagnose tiny.yaml:small" in failing.err
    reported = searching("diagnose", "tiny.yaml:small")
    assert reported.code == 0, reported.out + reported.err
    assert "'small' is looked at as its trial 'int8-" in reported.out
    # As a variant of its own it must lose no part of its outputs; and `validate` is given the fp32 model.
    assert reported.ran == ["small/fidelity"]
    assert "FAILED  tiny:small/validate: " in reported.out
    written = pasted(reported.out)["small"]
    assert written["mode"] == "dynamic"
    assert written["validate"] == {"cosine_min": 0.99999}
    replace_quantization(searching, reported.out)
    mended = searching.run("--only", "small/validate")
    assert mended.code == 0, mended.out + mended.err
    assert mended.ran == []


def test_a_trial_is_looked_at_by_name_without_the_search(searching):
    passing = ("--set", "quantization.small.validate.cosine_min=0")
    reported = searching("diagnose", "tiny.yaml:small", "--trial", "int8-keep-5", *passing)
    assert reported.code == 0, reported.out + reported.err
    assert "every gate passes\nthe goal of the search is met: cosine_min " in reported.out
    assert "'small' is looked at as its trial 'int8-keep-5'" in reported.out
    assert pasted(reported.out)["small"]["keep_most_sensitive"] == 0.05
    assert not [step for step in reported.ran if step.startswith(("small/choose", "small/trials"))]


def test_a_missed_goal_is_met_by_the_fewest_nodes_in_fp32_and_their_cost_is_reported(searching):
    searching.edit("tiny.yaml", "include: [dynamic, fp16]", "include: [dynamic]")
    searching.edit("tiny.yaml", "trials: 2", "trials: 1")
    searching.edit(
        "tiny.yaml", "goal: {cosine_min: 0.5}", "goal: {cosine_min: 0.99998, sqnr_db: 30}"
    )
    searching.edit("tiny.yaml", "validate: {cosine_min: 0.99999}", "validate: {cosine_min: 0.5}")
    failing = searching.run("--only", "small/choose")
    assert failing.code == 3, failing.out + failing.err
    reported = searching("diagnose", "tiny.yaml:small")
    assert reported.code == 0, reported.out + reported.err
    assert "the goal of the search is missed: cosine_min 0." in reported.out
    assert re.search(
        r"try     1 node in fp32, \S+ MB: fails: cosine_min 0\.\d+, sqnr_db", reported.out
    )
    assert re.search(
        r"the least that meets the goal: [23] nodes in fp32, cosine_min 0\.9999\d*, sqnr",
        reported.out,
    )
    cost = r"it costs: \S+ MB, \S+ MB as it was, \S+ MB in fp32; (.* x|too few rounds).* the speed it had; "
    assert re.search(cost, reported.out)
    nodes = pasted(reported.out)["small"]["nodes_to_exclude"]
    assert 2 <= len(nodes) < 4
    found = json.loads(searching("diagnose", "tiny.yaml:small", "--json").out)
    assert found["goal"]["missed"].startswith("cosine_min 0.")
    assert found["yaml"][-1].strip() == f'- "{nodes[-1]}"'
    sizes = {each["size_bytes"] for each in found["trials"] if each["passed"]}
    assert found["cost"]["mended_bytes"] in sizes
    assert found["cost"]["over_tried"]["value"] > 0
    assert [each["passed"] for each in found["trials"]][:1] == [False]


def test_a_failing_metric_says_what_to_type_with_the_settings_of_the_run(project):
    project.write("models/data.py", DATA)
    make(project, OUTLIER, "quantization: {fp32: none}\n")
    evaluate = "evaluate: {data: models/data.py:judged, metric: models/data.py:closeness}\n"
    project.edit("tiny.yaml", "quantization:", evaluate + "quantization:")
    done = project.run("--only", "fp32/evaluate", "--set", "evaluate.min=5")
    assert done.code == 3, done.out + done.err
    assert "onnxbuild diagnose tiny.yaml:fp32 --set evaluate.min=5" in done.err
    reported = project("diagnose", "tiny.yaml:fp32", "--set", "evaluate.min=5")
    assert reported.code == 0
    assert "tiny:fp32/evaluate fails: models/data.py:closeness is " in reported.out


TWO = """\
version: 1
name: two
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
export: {exporter: torchscript}
benchmark: {measure: false}
pipeline: {run: models/chain.py:run, samples: models/chain.py:samples, metric: models/chain.py:nearness, min: -0.02}
quantization: {fp32: none, int8: {mode: dynamic, per_channel: false}}
components:
  first:
    model: models/first.py:load
    dummy_inputs: {input: {dtype: float32, shape: [batch, 16]}}
    outputs: [hidden]
  second:
    model: models/second.py:load
    dummy_inputs: {input: {dtype: float32, shape: [batch, 16], from: first.hidden}}
    outputs: [logits]
"""
CHAIN = """
import numpy as np


def samples():
    for n in range(4):
        yield np.random.default_rng(n).normal(size=(4, 16)).astype(np.float32)


def run(parts, sample):
    return {"logits": parts.second(parts.first(sample)["hidden"])["logits"]}


def nearness(outputs, expected):
    pairs = zip(outputs, expected, strict=True)
    return -float(np.mean([np.abs(a["logits"] - b["logits"]).mean() for a, b in pairs]))
"""


@pytest.fixture
def two(project):
    plain = OUTLIER.replace("layers[1].weight[0] *= 1e-4", "pass").replace("= 1e3", "*= 1")
    project.write("models/first.py", plain)
    project.write("models/second.py", OUTLIER)
    project.write("models/chain.py", CHAIN)
    project.write("two.yaml", TWO)
    return project


def test_of_a_pipeline_the_component_and_the_node_that_cost_its_score_are_named_and_mended(two):
    assert two("run", "two.yaml", "--only", "pipeline:int8/validate").code == 3
    reported = two("diagnose", "two@pipeline:int8")
    assert reported.code == 0, reported.out + reported.err
    assert "two@pipeline:int8/validate fails: models/chain.py:nearness is " in reported.out
    components = re.findall(
        r"^(first|second)  +int8 +(-[\d.]+) +(passes|fails)$", reported.out, re.MULTILINE
    )
    assert [(name, end) for name, _, end in components] == [
        ("second", "fails"),
        ("first", "passes"),
    ]
    assert re.search(r"component +node +cost\nsecond +\S*\.4/Gemm +\d", reported.out)
    assert "the least that passes: 1 node in fp32; paste this:" in reported.out
    written = yaml.safe_load(reported.out[reported.out.rindex("\ncomponents:") :])
    own = written["components"]["second"]["quantization"]["int8"]
    assert "first" not in written["components"]
    setting = f"components.second.quantization.int8={json.dumps(own)}"
    again = two("run", "two.yaml", "--only", "pipeline:int8/validate", "--set", setting)
    assert again.code == 0, again.out + again.err
    found = json.loads(two("diagnose", "two@pipeline:int8", "--json").out)
    assert found["ranked_by"] == "models/chain.py:nearness"
    assert [each["component"] for each in found["components"]] == ["second", "first"]
    assert len(found["nodes"]) == 8
    assert found["nodes"][0]["name"] == own["nodes_to_exclude"][0]
    assert found["trials"][0]["passed"]


def test_of_a_component_the_nodes_are_in_the_order_of_what_they_cost_its_pipeline(two):
    reported = two("diagnose", "two@second:int8")
    assert reported.code == 0, reported.out + reported.err
    assert "cost: drop of models/chain.py:nearness, if only this node is in few bits" in (
        reported.out
    )
    found = json.loads(two("diagnose", "two@second:int8", "--no-bisect", "--json").out)
    costs = {each["name"]: each["cost"] for each in found["nodes"] if each["cost"] is not None}
    assert len(costs) == 4
    written = yaml.safe_load("\n".join(found["yaml"][found["yaml"].index("") :]))
    nodes = written["components"]["second"]["quantization"]["int8"]["nodes_to_exclude"]
    assert nodes == sorted(costs, key=costs.get, reverse=True)[:3]
