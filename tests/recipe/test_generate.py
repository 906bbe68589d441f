"""`generate` needs prompts, and a model that decoding can feed."""

import pytest

from onnxbuild.host.host import HostFacts
from onnxbuild.resolver import resolve
from tests.recipe.test_states import RECIPE

VNNI = HostFacts("x86_64", frozenset({"avx512_vnni"}))
GENERATE = RECIPE + "generate: {prompts: dummy, tokens: 5}\n"


def test_a_decoder_with_prompts_has_no_fault(project):
    recipe = project.recipe(GENERATE)
    assert recipe.entrypoints["prompts"].target == "dummy"


def test_generate_without_prompts_names_the_key(project):
    (fault,) = project.faults(GENERATE.replace("prompts: dummy, ", ""))
    assert "generate has no prompts" in fault


def test_a_model_without_state_can_not_generate(project):
    start, end = GENERATE.index("state:"), GENERATE.index("outputs")
    text = (GENERATE[:start] + GENERATE[end:]).replace("past + sequence", "past")
    (fault,) = project.faults(text)
    assert "generate can't run this model: it has no `state`" in fault


def test_an_input_that_decoding_can_not_feed_is_named(project):
    more = "dummy_inputs:\n  pixels: {dtype: float32, shape: [batch, 3]}\n"
    (fault,) = project.faults(GENERATE.replace("dummy_inputs:\n", more))
    assert "input 'pixels' is neither ids of tokens, nor a mask" in fault


def test_a_chunk_of_more_tokens_than_a_call_takes_is_a_fault(project):
    def chunk(size):
        return GENERATE.replace("tokens: 5", f"tokens: 5, held_back: 3, chunk: {size}")

    most = next(each.max for each in project.recipe(GENERATE).axes if each.name == "sequence")
    project.recipe(chunk(most))
    (fault,) = project.faults(chunk(most + 1))
    assert f"generate.chunk is {most + 1}; one call takes {most} new tokens at most" in fault


TEXTS = GENERATE.replace(
    "prompts: dummy", "texts: [one, two], tokenizer: [tokenizer.json, tokenizer_config.json]"
)


def test_texts_stand_in_place_of_prompts(project):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (project.folder / "recipes" / name).write_text("{}")
    recipe = project.recipe(TEXTS)
    assert "prompts" not in recipe.entrypoints
    files = recipe.entrypoints["generate.tokenizer"].files
    assert files == ("recipes/tokenizer.json", "recipes/tokenizer_config.json")
    (fault,) = project.faults(TEXTS.replace("texts:", "prompts: dummy, texts:"))
    assert "generate has prompts and texts; one of them is continued" in fault


def test_texts_need_a_tokenizer(project):
    (project.folder / "recipes/tokenizer_config.json").write_text("{}")
    (fault,) = project.faults(TEXTS.replace("tokenizer.json, ", ""))
    assert "generate names no tokenizer.json, which makes ids of texts" in fault
    start, end = TEXTS.index(", tokenizer"), TEXTS.index(", tokens")
    (fault,) = project.faults(TEXTS[:start] + TEXTS[end:])
    assert "generate names no tokenizer.json" in fault


QUANTIZED = (
    GENERATE.replace("tokens: 5", "tokens: 5, max_kl: {bound}")
    + """\
quantization:
  fp32: none
  int8: dynamic
  int4: weight_only
"""
)


def bounds(project, bound):
    """Variant -> (max_kl of its gate, whether its gate decides in place of random inputs)."""
    graph = resolve([project.recipe(QUANTIZED.replace("{bound}", bound))], VNNI)
    found = {}
    for name in ("fp32", "int8", "int4"):
        steps = [graph.steps[f"demo:{name}/{step}"].params for step in ("generate", "validate")]
        found[name] = steps[0].max_kl, steps[1].scored
    return found


def test_a_bound_holds_for_all_variants_of_fewer_bits_or_by_name(project):
    assert bounds(project, "0.1") == {
        "fp32": (None, False), "int8": (0.1, True), "int4": (0.1, True),
    }  # fmt: skip
    assert bounds(project, "{int4: 0.2}") == {
        "fp32": (None, False), "int8": (None, False), "int4": (0.2, True),
    }  # fmt: skip


def test_a_bound_of_a_variant_that_is_not_there_is_a_fault(project):
    (fault,) = project.faults(QUANTIZED.replace("{bound}", "{int9: 0.2}"))
    assert "generate.max_kl names 'int9', which is no variant; did you mean 'int8'?" in fault


AUTO = (
    GENERATE
    + "quantization:\n  small: {mode: auto, goal: {perplexity_ratio: 1.02, size: smallest}}\n"
)


def test_a_search_for_the_smallest_tries_weights_in_few_bits_and_needs_no_stopwatch(project):
    graph = resolve([project.recipe(AUTO)], VNNI)
    choose = graph.steps["demo:small/choose"]
    trials = [each.name for each in choose.params.trials]
    assert trials[:2] == ["weights-4-by-64", "weights-4"]
    assert trials[-1] == "weights-8"
    assert "benchmark" not in choose.inputs
    assert {f"generation/{name}" for name in trials} < choose.inputs.keys()
    assert "tokens" in graph.steps["demo:weights-32-sensitivity"].inputs
    assert graph.steps["demo:small/validate"].params.scored
    mixed = next(each.written for each in choose.params.trials if "10-in-8" in each.name)
    assert "sensitive_in_8_bits: 0.1" in mixed


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("perplexity_ratio: 1.02, ", "", "nothing says what may be lost"),
        ("size: smallest}", "size: smallest}, include: [dynamic]", "whose trials are of mode 'weight_only', and `include`"),
        ("generate: {prompts: dummy, tokens: 5}\n", "", "and nothing ranks its nodes"),
    ],
)  # fmt: skip
def test_a_search_for_the_smallest_needs_a_bound_and_prompts(project, old, new, what):
    faults = "\n".join(project.faults(AUTO.replace(old, new)))
    assert what in faults
