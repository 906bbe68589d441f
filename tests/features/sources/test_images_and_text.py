"""`model: {transformers: FOLDER}` of a LLaVA: the components that it stands for, and what is refused."""

import pytest
import yaml

from tests.features.sources.test_transformers import HEAD, folder
from tests.first_recipe.conftest import here  # noqa: F401 - a fixture
from tests.first_recipe.conftest import onnxbuild as command  # noqa: F401 - a fixture
from tests.steps import llava
from tests.written_recipes import assert_a_fault, faults, loader

TEXT = {
    "model_type": "llama", "vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 4096,
}  # fmt: skip
TOWER = {"model_type": "clip_vision_model", "image_size": 336, "patch_size": 14}
LLAVA = {
    "architectures": ["LlavaForConditionalGeneration"], "model_type": "llava", "image_token_index": 50,
    "text_config": TEXT, "vision_config": TOWER,
}  # fmt: skip

PARTS = """\
components:
  vision: {model: {transformers: weights, part: vision}}
  embedder: {model: {transformers: weights, part: embedder}, dummy_inputs: {features: {from: vision.features}}}
  decoder: {model: {transformers: weights, part: decoder}, dummy_inputs: {inputs_embeds: {from: embedder.embeds}}}
"""
"""A recipe that names the parts itself."""


@pytest.fixture
def load(tmp_path):
    return loader(tmp_path)


def shapes(recipe):
    return {each.name: each.shape for each in recipe.inputs}


@pytest.mark.parametrize("head", [HEAD, HEAD.replace("}", ", task: image-text-to-text}")])
def test_a_folder_is_three_components_and_a_pipeline(load, tmp_path, head):
    folder(tmp_path / "weights", LLAVA)
    vision, embedder, decoder, pipeline = load(head).recipes
    assert shapes(vision) == {"pixel_values": ("images", 3, 336, 336)}
    assert shapes(embedder) == {
        "input_ids": ("batch", "sequence"),
        "features": ("images", 576, 32),
    }
    assert shapes(decoder)["inputs_embeds"] == ("batch", "sequence", 32)
    assert shapes(decoder)["past_key_values.1.value"] == ("batch", 4, "past", 8)
    most = {each.name: each.max for each in decoder.axes}
    assert most == {"batch": 8, "past": 1024 + 2 * 576, "sequence": 128 + 2 * 576}
    args = pipeline.model.args
    assert (pipeline.model.target, args["tokens"]) == ("greedy", 24)
    plan = args["plan"]
    assert plan["encoders"] == [{"component": "vision", "takes": {"pixel_values": "pixel_values"}}]
    assert plan["embedder"] == {
        "component": "embedder",
        "ids": "input_ids",
        "features": {
            "name": "features", "dtype": "float32", "shape": ["images", 576, 32], "from": "vision.features",
        },
        "output": "embeds",
        "gives": "inputs_embeds",
        "image_token": 50,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("tower", "strategy", "patches"),
    [
        (TOWER, "default", 576),
        (TOWER, "full", 577),
        ({"model_type": "siglip_vision_model", "image_size": 32, "patch_size": 8}, "full", 16),
    ],
)
def test_the_number_of_features_goes_by_the_tower_and_what_is_taken_of_it(
    load, tmp_path, tower, strategy, patches
):
    config = {**LLAVA, "vision_config": tower, "vision_feature_select_strategy": strategy}
    folder(tmp_path / "weights", config)
    assert shapes(load(HEAD).recipes[1])["features"] == ("images", patches, 32)


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        ("components: {a: {model: {transformers: weights}}}\n",
         "the model has a vision, an embedder and a decoder, which are 3 graphs; expected vision, embedder or decoder",
         "write `part: vision` here and components with `part: embedder` and `part: decoder`"),
        ("model: {transformers: weights, part: encoder}\n",
         "part is 'encoder'; expected vision, embedder or decoder", "part: vision"),
        ("model: {transformers: weights, task: text-generation}\n",
         "the folder holds LlavaForConditionalGeneration, which has no head for it", "write `task: image-text-to-text`"),
        ("model: {transformers: weights}\npipeline: {start: [1]}\n",
         "pipeline has a start, and the decoder goes on from each row's 'input_ids'", "remove `start`"),
        ("model: {transformers: weights}\npipeline: {image_tokn: 5}\n", "image_tokn", "image_token"),
        (PARTS + "pipeline: {run: greedy, samples: dummy}\n",
         "with images, the decoder 'decoder' needs an `image_token` in the recipe", "declare it so"),
        (PARTS.replace(", dummy_inputs: {inputs_embeds: {from: embedder.embeds}}", "")
         + "pipeline: {run: greedy, samples: dummy, image_token: 50}\n",
         "with images, the decoder 'decoder' needs a component that gives it embeddings", "declare it so"),
        ("model: {transformers: weights}\ncomponents: {embedder: {dummy_inputs: {more: {dtype: int64, shape: [batch, sequence]}}}}\n",
         "a component that gives a decoder embeddings takes ids and, by `from`, features of images", "callable"),
    ],
)  # fmt: skip
def test_a_mistake_has_its_line_and_a_fix(load, tmp_path, text, what, fix):
    folder(tmp_path / "weights", LLAVA)
    assert_a_fault(load, text, what, fix)


@pytest.mark.parametrize(
    ("changes", "what", "fix"),
    [
        ({"vision_config": {"model_type": "pixtral"}}, "it is more than one graph", "as `components`, each by a callable"),
        ({"architectures": ["LlavaNextForConditionalGeneration"]}, "it is more than one graph", "as `components`"),
        ({"text_config": {"model_type": "llama"}}, "has no `hidden_size` in `text_config`", "write `hidden_size` there"),
    ],
)  # fmt: skip
def test_another_form_is_refused(load, tmp_path, changes, what, fix):
    folder(tmp_path / "weights", LLAVA | changes)
    found = faults(load, HEAD)
    assert any(what in each for each, _, _ in found), found
    assert any(fix in each for _, _, each in found), found


def test_init_writes_components_and_their_pipeline(here, command):  # noqa: F811
    llava.whole().save_pretrained(here / "weights/small")
    done = command("init", "weights/small")
    assert done.code == 0, done.err
    recipe = yaml.safe_load((here / "recipes/small.yaml").read_text())
    assert list(recipe["components"]) == ["vision", "embedder", "decoder"]
    inputs = recipe["components"]["decoder"]["dummy_inputs"]
    assert inputs["inputs_embeds"]["from"] == "embedder.embeds"
    assert recipe["pipeline"] == {"run": "greedy", "samples": "dummy", "image_token": llava.IMAGE}
    assert command("lint", "recipes/small.yaml").code == 0
