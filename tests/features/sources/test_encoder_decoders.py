"""`model: {transformers: FOLDER}` of a model with an encoder and a decoder: the components that it stands for, and what is refused."""

import pytest
import yaml

from tests import tiny_transformers as tiny
from tests.features.sources.test_transformers import HEAD, folder
from tests.first_recipe.conftest import here  # noqa: F401 - a fixture
from tests.first_recipe.conftest import onnxbuild as command  # noqa: F401 - a fixture
from tests.steps.encoder_decoders import MODELS
from tests.written_recipes import assert_a_fault, faults, loader

T5 = {
    "architectures": ["T5ForConditionalGeneration"], "model_type": "t5", "is_encoder_decoder": True,
    "vocab_size": 60, "d_model": 24, "d_kv": 8, "num_heads": 4, "num_layers": 1, "num_decoder_layers": 2,
    "decoder_start_token_id": 0,
}  # fmt: skip
WHISPER = {
    "architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "is_encoder_decoder": True,
    "vocab_size": 60, "d_model": 32, "encoder_layers": 1, "decoder_layers": 2, "decoder_attention_heads": 4,
    "num_mel_bins": 8, "max_source_positions": 30, "max_target_positions": 40, "decoder_start_token_id": 3,
}  # fmt: skip


@pytest.fixture
def load(tmp_path):
    return loader(tmp_path)


def shapes(recipe):
    return {each.name: each.shape for each in recipe.inputs}


def test_a_folder_of_texts_is_two_components_and_a_pipeline(load, tmp_path):
    folder(tmp_path / "weights", T5)
    encoder, decoder, pipeline = load(HEAD).recipes
    assert [each.name for each in (encoder, decoder, pipeline)] == [
        "demo@encoder", "demo@decoder", "demo@pipeline",
    ]  # fmt: skip
    assert shapes(encoder) == {
        "input_ids": ("batch", "source"),
        "attention_mask": ("batch", "source"),
    }
    cross = ["cross_key.0", "cross_value.0", "cross_key.1", "cross_value.1"]
    assert list(encoder.outputs) == cross
    assert shapes(decoder)["past_key_values.1.value"] == ("batch", 4, "past", 8)
    assert shapes(decoder)["past_key_values.1.cross_value"] == ("batch", 4, "source", 8)
    assert [each.output for each in decoder.connections] == cross
    args = pipeline.model.args
    assert (pipeline.model.target, args["start"], args["tokens"]) == ("greedy", [0], 24)
    assert args["plan"]["decoder"]["takes"] == {
        "attention_mask": "attention_mask",
        **{f"past_key_values.{n}.{part}": f"encoder.{part}.{n}" for n in (0, 1) for part in ("cross_key", "cross_value")},
    }  # fmt: skip


def test_a_folder_of_sounds_has_keys_of_one_length_and_no_mask(load, tmp_path):
    folder(tmp_path / "weights", WHISPER)
    encoder, decoder, pipeline = load(HEAD).recipes
    assert shapes(encoder) == {"input_features": ("batch", 8, 60)}
    assert "attention_mask" not in shapes(decoder)
    assert shapes(decoder)["past_key_values.0.cross_key"] == ("batch", 4, 30, 8)
    assert max(each.max for each in decoder.axes if each.name == "past") == 36
    assert pipeline.model.args["start"] == [3]


def test_what_the_recipe_writes_of_a_component_or_the_pipeline_comes_first(load, tmp_path):
    folder(tmp_path / "weights", T5)
    text = f"{HEAD}components: {{decoder: {{quantization: {{fp32: none, int8: dynamic}}}}}}\npipeline: {{tokens: 8, start: [5, 6]}}\n"
    encoder, decoder, pipeline = load(text).recipes
    assert [each.name for each in encoder.variants] == ["fp32"]
    assert [each.name for each in decoder.variants] == ["fp32", "int8"]
    assert [each.name for each in pipeline.variants] == ["fp32", "int8"]
    assert (pipeline.model.args["tokens"], pipeline.model.args["start"]) == (8, [5, 6])


def test_one_part_alone_is_a_component_that_a_recipe_names(load, tmp_path):
    folder(tmp_path / "weights", T5)
    (recipe,) = load(
        "version: 1\nname: demo\nmodel: {transformers: weights, part: encoder}\n"
    ).recipes
    assert recipe.component == ""
    assert recipe.model.args["part"] == "encoder"


def with_states(source="encoder.{part}.{layer}", own=""):
    """A recipe that declares the decoder's states itself."""
    return (
        "model: {transformers: weights}\ncomponents:\n  decoder:\n    state:\n"
        f"      past_key_values: {{each: {{layer: 2, part: [key, value]}}, shape: [batch, 4, past, 8], by: target{own}}}\n"
        "      cross: {parameter: past_key_values, each: {layer: 2, part: [cross_key, cross_value]}, "
        f"shape: [batch, 4, source, 8], update: constant, from: '{source}'}}\n"
    )


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        ("components: {a: {model: {transformers: weights}}}\n",
         "the model has an encoder and a decoder, which are 2 graphs; expected encoder or decoder",
         "write `part: encoder` here and components with `part: decoder`"),
        ("model: {transformers: weights, part: encodr}\n", "part is 'encodr'; expected encoder or decoder", "part"),
        ("model: {transformers: weights}\npipeline: {run: greedi}\n",
         "pipeline.run is 'greedi'; did you mean 'greedy'?", "write `greedy`"),
        ("model: {transformers: weights}\npipeline: {tokens: 600}\n",
         "after 600 tokens the decoder's state holds 600; axis 'past' takes 0 to 508",
         "`past: {max: 600}` in `dynamic_axes`"),
        ("model: model.py:load\ndummy_inputs: {x: {dtype: float32, shape: [2]}}\ncalibration: {data: pipeline}\n",
         "calibration.data are those of the `pipeline`, and the recipe has none", "add `pipeline:"),
        (with_states(own=", from: encoder.cross"),
         "state.past_key_values has `from`, and its update is grows", "write `update: constant`"),
        (with_states("encoder.{part}.{layr}"), "state.cross.from names '{layr}'; did you mean 'layer'?", "write `{layer}`"),
        (with_states("encoder.c{part}.{layer}"),
         "is from 'ccross_key.0', which is no output of 'encoder'", "write `from: encoder.cross_key.0`"),
        ("model: {transformers: weights}\npipeline: {start: []}\n", "pipeline has no start", "add `start: [0]`"),
        ("model: {transformers: weights}\npipeline: {batches: []}\n", "pipeline has no batches", "write `batches: [1, 2]`"),
        ("model: {transformers: weights}\npipeline: {batches: [1, 9]}\n",
         "pipeline has batches of 9 rows, and 8 samples", "or `pipeline: {count: 9}`"),
        ("model: {transformers: weights}\npipeline: {batches: [1, 9], count: 9}\n",
         "pipeline has batches of 9 rows; axis 'batch' takes 1 to 8", "`batch: {max: 9}` in `dynamic_axes`"),
        ("model: {transformers: weights}\npipeline: {run: sample, top_p: 0}\n",
         "pipeline.top_p is 0: the most likely token always follows", "write a number above 0"),
        ("model: {transformers: weights}\npipeline: {tokenizer: [weights/config.json]}\n",
         "pipeline.tokenizer has no tokenizer.json", "add `FOLDER/tokenizer.json`"),
        ("model: {transformers: weights}\npipeline: {temperature: 0.5}\n",
         "pipeline has `temperature`, which `run: greedy` does not take", "remove `temperature`"),
        ("model: {transformers: weights}\npipeline: {run: model.py:load}\n",
         "pipeline.samples are dummy, which are rows of `run: greedy`", "name a callable"),
        ("model: {transformers: weights}\ncomponents: {decoder: {dummy_inputs: {more: {dtype: float32, shape: [batch, 3]}}}}\n",
         "pipeline can't run these components by `greedy`: input 'more' is neither",
         "write a callable"),
    ],
)  # fmt: skip
def test_a_mistake_has_its_line_and_a_fix(load, tmp_path, text, what, fix):
    folder(tmp_path / "weights", T5)
    assert_a_fault(load, text, what, fix)


def test_keys_that_the_folder_writes_for_another_run_are_no_mistake(load, tmp_path):
    folder(tmp_path / "weights", T5)
    text = f"{HEAD}pipeline: {{run: RUN, samples: model.py:load}}\n"
    assert load(text.replace("RUN", "model.py:load")) is not None
    (one,) = {what for what, _, _ in faults(load, text.replace("RUN", "ctc"))}
    assert "one component gives the logits of frames, and there are 2" in one


def test_a_config_that_does_not_say_the_decoders_cache_is_refused(load, tmp_path):
    folder(tmp_path / "weights", {**T5, "num_heads": None})
    found = faults(load, HEAD)
    assert any("does not say what is in the decoder's cache" in each for each, _, _ in found)


@pytest.mark.parametrize("name", MODELS)
def test_init_writes_components_and_their_pipeline(here, command, name):  # noqa: F811
    tiny.saved(here / "weights/small", MODELS[name])
    done = command("init", "weights/small")
    assert done.code == 0, done.err
    assert "  decoder: state: 4 tensors that go out and come in again\n" in done.out
    recipe = yaml.safe_load((here / "recipes/small.yaml").read_text())
    assert list(recipe["components"]) == ["encoder", "decoder"]
    assert recipe["components"]["decoder"]["state"]["cross"]["from"] == "encoder.{part}.{layer}"
    assert recipe["pipeline"]["run"] == "greedy"
    assert not (here / "recipes/small_data.py").exists()
    assert command("lint", "recipes/small.yaml").code == 0
