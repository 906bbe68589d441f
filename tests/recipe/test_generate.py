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
