"""`generate` needs prompts, and a model that decoding can feed."""

from tests.recipe.test_states import RECIPE

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
