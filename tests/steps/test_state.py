"""Decoders with their caches, from the module to tokens; and graphs that are wrong in one place, which the gates catch."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from onnx import helper, load, numpy_helper

from onnxbuild.core.entrypoint import DUMMY_DATA, FILE_DATA
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.state import Growth, State, StateTensor
from onnxbuild.core.target import CPU_TARGET, TargetGates
from onnxbuild.onnxkit.accuracy.tolerances import DEFAULT_TOLERANCES, VariantTolerances
from onnxbuild.onnxkit.data.reference_feeds import ReferenceOptions
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.quantize.blockwise import BlockGrid
from onnxbuild.recipe.load import load_recipes
from onnxbuild.steps import expected_tokens, export, generate, reference, sensitivity, validate
from tests.fakes.step_context import run_step
from tests.steps import decoders
from tests.steps.decoders import DECODERS, WORDS

HERE = Path(__file__).parent
AXES = (Axis("batch", 1, 4, 2), Axis("sequence", 1, 24, 3), Axis("past", 0, 40, 5))
OWN = (
    DummyInput("input_ids", "int64", ("batch", "sequence"), low=0, high=WORDS),
    DummyInput("attention_mask", "int64", ("batch", "past + sequence"), mask="left"),
    DummyInput("position_ids", "int64", ("batch", "sequence"), arange="past"),
)


def state(layers=2, parts=("key", "value"), parameter="past_key_values"):
    return State(
        parameter,
        tuple(
            StateTensor(f"past.{n}.{part}", f"present.{n}.{part}", {"layer": n, "part": part})
            for n in range(layers)
            for part in parts
        ),
    )


def inputs_of(declared, shape=("batch", 2, "past", 8), own=OWN):
    growth = Growth("past", "sequence")
    state = (
        DummyInput(each.input, "float32", shape, fed_by=each.output, growth=growth)
        for each in declared.tensors
    )
    return (*own, *state)


class Built:
    """A module with its state, its graph, PyTorch's outputs at all points and its tokens, each made when asked for."""

    def __init__(self, folder, target, args, *, heads=2, own=OWN, declared=None, shape=None):
        self.folder = folder
        self.declared = declared or state()
        self.model = Entrypoint(target, args=args, state=(self.declared,))
        self.inputs = inputs_of(self.declared, shape or ("batch", heads, "past", 8), own)
        self.outputs = ("logits", *self.declared.outputs)
        self.axes = AXES

    def export(self, exporter="torchscript", opset=18):
        params = export.ExportParams(
            self.model,
            self.inputs,
            self.outputs,
            self.axes,
            opset,
            None,
            export.ExportOptions(exporter),
        )
        outcome, context = run_step(export.KIND, params, self.folder / "export")
        return outcome, context.output("model")

    def reference(self):
        params = reference.ReferenceParams(
            self.model, self.inputs, self.outputs, self.axes, None, ReferenceOptions()
        )
        _, context = run_step(reference.KIND, params, self.folder / "reference")
        return context.output("reference")

    def tokens(self, count=24, prompts=6):
        data = Entrypoint(DUMMY_DATA)
        params = expected_tokens.ExpectedTokensParams(
            self.model, self.inputs, self.axes, self.outputs, data, count, prompts, 0
        )
        _, context = run_step(expected_tokens.KIND, params, self.folder / "tokens")
        return context.output("tokens")

    def validated(self, model, reference, **options):
        default = DEFAULT_TOLERANCES["fp32"]
        bounds = VariantTolerances(
            default.atol, default.rtol, default.cosine_min, default.sqnr_db_min, default.equal_min
        )
        params = validate.ValidateParams(
            "fp32", "fp32", bounds, CPU_TARGET, TargetGates(), **options
        )
        given = {"model": model, "reference": reference}
        return run_step(validate.KIND, params, self.folder / "validate", given)[0]

    def generated(self, model, tokens, *, precision="fp32", exact=None, **options):
        bounds = {"batches": (1, 2, 3), "distinct": 8, "max_kl": None} | options
        params = generate.GenerateParams(
            precision, precision, self.inputs, "logits", target=CPU_TARGET, **bounds
        )
        given = {"model": model, "tokens": tokens} | ({"exact": exact} if exact else {})
        return run_step(generate.KIND, params, self.folder / "generate", given)[0]


def built(folder, name, **more):
    heads = DECODERS[name].heads
    return Built(folder, f"{HERE}/decoders.py:load", {"name": name}, heads=heads, **more)


@pytest.mark.slow
@pytest.mark.parametrize("name", DECODERS)
def test_a_decoder_of_transformers_gives_the_tokens_of_generate_with_its_cache_going_round(
    name, tmp_path
):
    made = built(tmp_path, name)
    outcome, model = made.export("auto")
    passed = made.validated(model, made.reference())
    assert passed.findings == ()
    tokens = made.generated(model, made.tokens())
    assert tokens.findings == ()
    assert tokens.metrics["equal"] == 1
    assert tokens.metrics["compared"] == 3 * 6 * 24
    assert outcome.metrics["exporter"] in ("dynamo", "torchscript")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("exporter", "opset", "has_attention"),
    [
        ("dynamo", 18, False),
        ("dynamo", 23, True),
        ("dynamo", 24, True),
        ("torchscript", 24, False),
    ],
)
def test_both_exporters_export_a_cache_at_old_and_new_opsets(
    exporter, opset, has_attention, tmp_path
):
    made = built(tmp_path, "llama")
    _, model = made.export(exporter, opset)
    graph = load(model / "model.onnx").graph
    (present,) = (each for each in graph.output if each.name == "present.1.value")
    dims = present.type.tensor_type.shape.dim
    assert [each.dim_param or each.dim_value for each in dims] == [
        "batch",
        2,
        "past + sequence",
        8,
    ]
    assert ("Attention" in {node.op_type for node in graph.node}) == has_attention
    assert made.generated(model, made.tokens()).findings == ()


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    made = built(tmp_path_factory.mktemp("llama"), "llama")
    _, model = made.export()
    return made, model, made.reference(), made.tokens()


def renamed(model, names):
    """Let nodes take other values."""
    for node in model.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]


def instead(model, name, *nodes):
    """Let all that takes `name` take the last of the nodes."""
    renamed(model, {name: nodes[-1].output[0]})
    for node in reversed(nodes):
        model.graph.node.insert(0, node)


def constant(model, name, value):
    model.graph.initializer.append(numpy_helper.from_array(np.array(value, np.int64), name))
    return name


def layers_swapped(model):
    pairs = [(f"past.0.{part}", f"past.1.{part}") for part in ("key", "value")]
    renamed(model, {a: b for one, other in pairs for a, b in ((one, other), (other, one))})


def new_layers_swapped(model):
    names = {"present.0.key": "present.1.key", "present.1.key": "present.0.key"}
    renamed(model, names)
    for node in model.graph.node:
        node.output[:] = [names.get(name, name) for name in node.output]


def key_for_value(model):
    renamed(model, {"past.0.key": "past.0.value", "past.0.value": "past.0.key"})


def position_frozen(model):
    zero = constant(model, "mutant_zero", 0)
    instead(model, "position_ids", helper.make_node("Mul", ["position_ids", zero], ["mutant"]))


def position_late(model):
    """Once there is a cache, each position is one too great."""
    names = [constant(model, f"mutant_{n}", n) for n in (1, 2)]
    one, axis = names
    instead(
        model,
        "position_ids",
        helper.make_node("Shape", ["past.0.key"], ["mutant_shape"]),
        helper.make_node("Gather", ["mutant_shape", axis], ["mutant_past"]),
        helper.make_node("Min", ["mutant_past", one], ["mutant_late"]),
        helper.make_node("Add", ["position_ids", "mutant_late"], ["mutant"]),
    )


def newest_masked(model):
    names = [constant(model, f"mutant_{n}", [n]) for n in (0, -1, 1, 2**40)]
    zero, last, axis, end = names
    instead(
        model,
        "attention_mask",
        helper.make_node("Slice", ["attention_mask", zero, last, axis], ["mutant_old"]),
        helper.make_node("Slice", ["attention_mask", last, end, axis], ["mutant_last"]),
        helper.make_node("Mul", ["mutant_last", zero], ["mutant_none"]),
        helper.make_node("Concat", ["mutant_old", "mutant_none"], ["mutant"], axis=1),
    )


def cache_cut(model):
    """The oldest cached key of layer 1 becomes the newest one."""
    names = [constant(model, f"mutant_{n}", [n]) for n in (1, 2, 2**40, -1)]
    one, axis, end, last = names
    instead(
        model,
        "past.1.key",
        helper.make_node("Slice", ["past.1.key", one, end, axis], ["mutant_rest"]),
        helper.make_node("Slice", ["past.1.key", last, end, axis], ["mutant_last"]),
        helper.make_node("Concat", ["mutant_rest", "mutant_last"], ["mutant"], axis=2),
    )


def padding_ignored(model):
    one = constant(model, "mutant_one", 1)
    instead(model, "attention_mask", helper.make_node("Max", ["attention_mask", one], ["mutant"]))


MUTANTS = (
    layers_swapped, new_layers_swapped, key_for_value, position_frozen, position_late, newest_masked, cache_cut,
    padding_ignored,
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.always
@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda each: each.__name__)
def test_a_graph_that_is_wrong_in_its_state_passes_no_gate(mutate, llama, tmp_path):
    made, model, expected, tokens = llama
    wrong = load(model / "model.onnx")
    mutate(wrong)
    save_model(wrong, tmp_path / "wrong")
    assert made.validated(tmp_path / "wrong", expected).findings
    (found,) = made.generated(tmp_path / "wrong", tokens).findings
    assert "are not PyTorch's: token" in found.what


@pytest.mark.slow
def test_the_graph_without_a_mutation_passes_both_gates(llama):
    made, model, expected, tokens = llama
    assert made.validated(model, expected).findings == ()
    assert made.generated(model, tokens).findings == ()


@pytest.mark.slow
def test_a_model_that_repeats_few_tokens_fails_the_gate_as_blind(llama):
    made, model, _, tokens = llama
    (found,) = made.generated(model, tokens, distinct=WORDS + 1).findings
    assert "equal tokens say nothing" in found.what


@pytest.mark.slow
def test_a_variant_of_fewer_bits_is_bounded_by_its_divergence(llama, tmp_path):
    made, model, _, tokens = llama
    rounded = load(model / "model.onnx")
    for each in rounded.graph.initializer:
        array = numpy_helper.to_array(each)
        if array.ndim == 2 and array.dtype == np.float32:
            step = np.abs(array).max() / 8
            each.CopyFrom(numpy_helper.from_array(np.round(array / step) * step, each.name))
    save_model(rounded, tmp_path / "rounded")
    few = {"precision": "int4", "exact": model}
    same = made.generated(model, tokens, **few, max_kl=1e-9)
    assert same.findings == ()
    assert (same.metrics["kl"], same.metrics["top1"]) == (0, 1)
    found = made.generated(tmp_path / "rounded", tokens, **few, max_kl=1e-4)
    assert "nats; expected at most 0.0001" in found.findings[0].what
    assert found.metrics["kl"] > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "int4"])
def test_a_gate_that_compared_no_token_has_not_passed(precision, llama):
    made, model, _, tokens = llama
    found = made.generated(
        model, tokens, precision=precision, exact=model, batches=(7,), max_kl=1.0
    )
    assert found.metrics["compared"] == 0
    assert "no token was compared: 6 prompts make no batch of 7" in found.findings[0].what


@pytest.mark.slow
def test_a_search_measures_its_trials_in_full_precision_too(llama):
    made, model, _, tokens = llama
    few = {"precision": "fp16", "exact": model}
    assert made.generated(model, tokens, **few, compares_trials=True).metrics["kl"] == 0
    assert made.generated(model, tokens, **few).metrics["equal"] == 1


@pytest.mark.slow
def test_a_text_of_ones_own_is_judged_in_place_of_pytorchs_continuation(llama, tmp_path):
    made, model, _, tokens = llama
    report = json.loads((tokens / "report.json").read_text())
    rng = np.random.default_rng(0)
    report["prompts"] = [rng.integers(3, WORDS, 9 + n).tolist() for n in range(3)]
    report["tokens"] = report["tokens"][:3]
    (tmp_path / "report.json").write_text(json.dumps(report))
    few = {"precision": "int4", "exact": model, "batches": (1, 3)}
    found = made.generated(model, tmp_path, **few, held_back=7)
    assert (found.metrics["compared"], found.metrics["kl"]) == (2 * 3 * 7, 0)
    with pytest.raises(StepError, match="prompt 0 has 9 tokens, and 9 are held back"):
        made.generated(model, tmp_path, **few, held_back=9)


@pytest.mark.slow
def test_nodes_are_ranked_by_the_divergence_that_few_bits_of_their_weights_cause(llama, tmp_path):
    made, model, _, tokens = llama
    params = sensitivity.SensitivityParams(
        None,
        None,
        made.inputs,
        AXES,
        samples=3,
        weights=BlockGrid(4, 32, symmetric=False),
        logits="logits",
    )
    given = {"model": model, "tokens": tokens}
    outcome, context = run_step(sensitivity.KIND, params, tmp_path, given)
    report = json.loads((context.output("sensitivity") / "report.json").read_text())
    assert (report["ranked_by"], report["rounding"], report["samples"]) == ("kl", "weight_only", 3)
    drops = [each["drop"] for each in report["nodes"]]
    assert drops == sorted(drops, reverse=True)
    assert 0 < drops[-1] < drops[0] < report["all"]["drop"]
    assert {each["op_type"] for each in report["nodes"]} == {"MatMul", "Gather"}
    assert outcome.metrics["nodes"] == 2 * 7 + 2
    fractional = replace(params, weights=BlockGrid(4, 32, symmetric=False, fractional=True))
    _, context = run_step(sensitivity.KIND, fractional, tmp_path / "hqq", given)
    other = json.loads((context.output("sensitivity") / "report.json").read_text())
    table, moved = ({each["name"]: each["drop"] for each in r["nodes"]} for r in (report, other))
    assert {name for name in table if moved[name] == table[name]} == {
        each["name"] for each in report["nodes"] if each["op_type"] == "Gather"
    }


# other caches than those of keys and values

BART = """\
version: 1
name: bart
model: decoders.py:bart
dummy_inputs:
  input_ids: {dtype: int64, shape: [batch, sequence], low: 0, high: 64}
  encoder_attention_mask: {dtype: int64, shape: [batch, encoded], mask: right}
state:
  past_key_values:
    each: {layer: 2, part: [key, value]}
    shape: [batch, 4, past, 8]
    by: sequence
  cross:
    parameter: past_key_values
    each: {layer: 2, part: [cross_key, cross_value]}
    input: cross.{layer}.{part}
    shape: [batch, 4, encoded, 8]
    update: constant
outputs: [logits]
dynamic_axes:
  batch: {min: 1, max: 4, example: 2}
  sequence: {min: 1, max: 24, example: 3}
  past: {min: 0, max: 40, example: 5}
  encoded: {min: 1, max: 24, example: 7}
"""

MAMBA = """\
version: 1
name: mamba
model: decoders.py:mamba
dummy_inputs:
  input_ids: {dtype: int64, shape: [batch, 1], low: 0, high: 64}
state:
  conv:
    parameter: cache_params
    each: {layer: 2, part: [conv]}
    shape: [batch, 32, 4]
    update: replaced
  recurrent:
    parameter: cache_params
    each: {layer: 2, part: [recurrent]}
    shape: [batch, 32, 4]
    update: replaced
outputs: [logits]
dynamic_axes:
  batch: {min: 1, max: 4, example: 2}
"""


def of_recipe(folder, text):
    """What a recipe next to decoders.py builds."""
    shutil.copy(HERE / "decoders.py", folder)
    (folder / "recipe.yaml").write_text(text)
    (recipe,) = load_recipes(folder / "recipe.yaml", project=folder).recipes
    model = recipe.model
    if model.target != FILE_DATA:
        model = replace(model, target=f"{folder}/{model.target}")
    made = Built(folder, "", {})
    made.model, made.inputs, made.outputs, made.axes = (
        model, recipe.inputs, recipe.outputs, recipe.axes,
    )  # fmt: skip
    return made


@pytest.mark.slow
def test_the_cache_of_an_encoder_is_an_input_alone(tmp_path):
    made = of_recipe(tmp_path, BART)
    _, model = made.export()
    assert made.validated(model, made.reference()).findings == ()
    names = {each.name for each in load(model / "model.onnx").graph.output}
    assert names == {
        "logits",
        *(f"present.{n}.{part}" for n in (0, 1) for part in ("key", "value")),
    }


@pytest.mark.slow
def test_a_folder_of_transformers_is_a_recipe_with_its_state(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    decoders.load("qwen3").save_pretrained(tmp_path / "qwen3")
    made = of_recipe(tmp_path, "version: 1\nname: folder\nmodel: {transformers: qwen3}\n")
    _, model = made.export()
    assert made.validated(model, made.reference()).findings == ()
    found = made.generated(model, made.tokens())
    assert (found.findings, found.metrics["equal"]) == ((), 1)


@pytest.mark.slow
def test_a_state_space_model_goes_on_token_by_token(tmp_path):
    made = of_recipe(tmp_path, MAMBA)
    _, model = made.export()
    assert made.validated(model, made.reference()).findings == ()
    found = made.generated(model, made.tokens())
    assert (found.findings, found.metrics["equal"], found.metrics["compared"]) == ((), 1, 6 * 24)


# a module that takes a list of tensors


class Sums(torch.nn.Module):
    """One head of attention over embeddings that are its cache."""

    def __init__(self, fault=""):
        super().__init__()
        torch.manual_seed(0)
        self.fault = fault
        self.table = torch.nn.Embedding(WORDS, 8)
        self.places = torch.nn.Embedding(64, 8)
        self.head = torch.nn.Linear(8, WORDS)

    def forward(self, input_ids, attention_mask, position_ids, past):
        new = self.table(input_ids) + self.places(position_ids)
        keys, values = (
            torch.cat([old[:, 0], each], 1) for old, each in zip(past, (new, 3 * new), strict=True)
        )
        scores = new @ keys.transpose(1, 2)
        length = keys.shape[1]
        seen = torch.arange(length) <= torch.arange(length - new.shape[1], length)[:, None]
        seen = seen & attention_mask[:, None].bool()
        scores = scores.masked_fill(~seen, -1e9)
        logits = self.head(scores.softmax(-1) @ values)
        present = (keys[:, None], values[:, None])
        if self.fault == "few":
            return logits
        if self.fault == "order":
            return (*present, logits)
        if self.fault == "value before key":
            return logits, *reversed(present)
        return logits, *present


def sums(fault=""):
    return Sums(fault).eval()


def plain(folder, **args):
    """The module of a list, with its state."""
    declared = state(layers=1, parameter="past")
    target = f"{HERE}/test_state.py:sums"
    return Built(folder, target, args, declared=declared, shape=("batch", 1, "past", 8))


@pytest.mark.slow
def test_a_module_of_a_list_is_judged_by_texts_that_are_computed_anew(tmp_path):
    made = plain(tmp_path)
    _, model = made.export()
    assert made.validated(model, made.reference()).findings == ()
    found = made.generated(model, made.tokens(), distinct=2)
    assert (found.findings, found.metrics["equal"]) == ((), 1)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("few", "forward returns 1 tensor; state 'past' alone needs 2 new ones after the outputs: no output feeds it"),
        ("order", r"output 'present.0.value' has shape .* input 'past.0.value', which it feeds, has"),
    ],
)  # fmt: skip
def test_new_state_that_does_not_come_back_is_refused(fault, said, tmp_path):
    with pytest.raises(StepError, match=said):
        plain(tmp_path, fault=fault).export()


@pytest.mark.slow
def test_new_state_in_another_order_of_one_shape_gives_other_tokens(tmp_path):
    made = plain(tmp_path, fault="value before key")
    _, model = made.export()
    assert made.validated(model, made.reference()).findings == (), (
        "PyTorch's own order is the same"
    )
    (found,) = made.generated(model, made.tokens(), distinct=2).findings
    assert "are not PyTorch's: token 1 " in found.what


def test_a_state_that_forward_does_not_take_is_named(tmp_path):
    made = plain(tmp_path)
    made.model = Entrypoint(made.model.target, state=(state(1, parameter="pasts"),))
    with pytest.raises(StepError, match=r"state 'pasts' is not a parameter of Sums\.forward"):
        made.export()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("declared", "shape", "said", "fix"),
    [
        (state(3), 2, "has 2 layers of key and value, .* declares 3 layers", "layer: 2"),
        (state(1), 2, "has 2 layers of key and value, .* declares 1 layer of", "layer: 2"),
        (state(2), 4, r"\[batch, 2, past, 8\]; .* \[batch, 4, past, 8\]", r"shape: \[batch, 2, past, 8\]"),
        (state(2, ("key", "valu")), 2, "part 'valu'; the parts of a Cache are key, value", "value"),
    ],
)  # fmt: skip
def test_a_cache_that_differs_from_the_declared_one_is_printed(
    declared, shape, said, fix, tmp_path
):
    made = built(tmp_path, "llama", declared=declared, shape=("batch", shape, "past", 8))
    with pytest.raises(StepError, match=said) as caught:
        made.export()
    assert caught.match(fix)


@pytest.mark.slow
def test_sizes_beyond_the_models_positions_are_refused_with_the_size_to_write(tmp_path):
    made = built(tmp_path, "gpt2")
    made.axes = (*AXES[:2], Axis("past", 0, 500, 5))
    with pytest.raises(
        StepError, match="reach position 502; the model has 128 positions"
    ) as caught:
        made.export()
    assert caught.match(r"past: \{max: 125\}")
