"""`model: {diffusers: FOLDER}` and `init` of a text-to-image pipeline: what a folder says, what is refused, what is rebuilt."""

import json

import pytest

from onnxbuild.core.recipe import FILE_DATA, Axis, DummyInput
from tests.cli.conftest import make_cheap_project
from tests.first_recipe.conftest import here, onnxbuild  # noqa: F401 - fixtures
from tests.written_recipes import faults, loader

HEAD = "version: 1\nname: demo\nmodel: {diffusers: weights}\n"
UNET = {
    "_class_name": "UNet2DConditionModel", "in_channels": 4, "cross_attention_dim": 32, "block_out_channels": [8, 8, 8],
    "sample_size": 32,
}  # fmt: skip
VAE = {"_class_name": "AutoencoderKL", "latent_channels": 4, "block_out_channels": [8, 8]}
CLIP = {
    "architectures": ["CLIPTextModel"], "model_type": "clip_text_model", "vocab_size": 99, "max_position_embeddings": 16,
}  # fmt: skip
SCHEDULER = {
    "num_train_timesteps": 1000, "beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear",
    "steps_offset": 1, "set_alpha_to_one": False,
}  # fmt: skip
INDEX = {
    "_class_name": "StableDiffusionPipeline",
    "scheduler": ["diffusers", "PNDMScheduler"],
    "safety_checker": [None, None],
    "text_encoder": ["transformers", "CLIPTextModel"],
    "tokenizer": ["transformers", "CLIPTokenizer"],
    "unet": ["diffusers", "UNet2DConditionModel"],
    "vae": ["diffusers", "AutoencoderKL"],
}

CHEAP = "def image(**_):\n    return 'cheap'\n\n\nsamples = psnr = image\n"
"""Code that cheap kinds can call."""


def folder(path, config, weights="diffusion_pytorch_model.safetensors"):
    """A model that nothing loads."""
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(config))
    if weights:
        (path / weights).write_bytes(b"")


def pipeline(path, index=INDEX, scheduler=SCHEDULER, unet=UNET):
    """A text-to-image pipeline that nothing loads."""
    folder(path / "text_encoder", CLIP, "model.safetensors")
    folder(path / "unet", unet)
    folder(path / "vae", VAE)
    (path / "scheduler").mkdir()
    (path / "scheduler/scheduler_config.json").write_text(json.dumps(scheduler))
    (path / "model_index.json").write_text(json.dumps(index))


@pytest.fixture
def load(tmp_path):
    return loader(tmp_path)


def test_a_unet_says_its_inputs_and_that_latents_are_halved_between_its_levels(load, tmp_path):
    folder(tmp_path / "weights", UNET)
    (recipe,) = load(HEAD).recipes
    assert recipe.frontend == "pytorch"
    assert recipe.model.target == FILE_DATA
    assert recipe.inputs == (
        DummyInput("sample", "float32", ("batch", 4, "height", "width")),
        DummyInput("timestep", "int64", ("batch",), low=0, high=1000),
        DummyInput("encoder_hidden_states", "float32", ("batch", "sequence", 32)),
    )
    assert recipe.outputs == ("prediction",)
    height = next(each for each in recipe.axes if each.name == "height")
    assert (height.min, height.multiple_of) == (4, 4)
    odd = "dynamic_axes: {height: {min: 2, max: 8, example: 4, multiple_of: 2}}\n"
    ((what, _, fix),) = faults(load, HEAD + odd)
    assert "the model takes 4 or more, multiples of 4 along axis 2 of input 'sample'" in what
    assert "multiple_of: 4" in fix


def test_of_a_vae_the_decoder_is_built(load, tmp_path):
    folder(tmp_path / "weights", VAE)
    (recipe,) = load(HEAD).recipes
    assert recipe.inputs == (DummyInput("latents", "float32", ("batch", 4, "height", "width")),)
    assert recipe.outputs == ("image",)
    assert Axis("width", min=1, max=64, example=16) in recipe.axes


REFUSED = {
    "another class": (
        lambda path: folder(path, VAE | {"_class_name": "FluxTransformer2DModel"}),
        ("config.json is of the class 'FluxTransformer2DModel'; those that are known are UNet2DConditionModel, "
        "AutoencoderKL"),
        "load it by a callable: `model: {entrypoint: models/mine.py:load}`",
    ),
    "more inputs": (
        lambda path: folder(path, UNET | {"addition_embed_type": "text_time"}),
        ("config.json has `addition_embed_type: text_time`: this UNet takes more than a sample, a timestep and a "
        "text"),
        "load it by a callable: `model: {entrypoint: models/mine.py:load}`",
    ),
    "no weights": (
        lambda path: folder(path, UNET, "diffusion_pytorch_model.bin"),
        "the folder weights has no diffusion_pytorch_model.safetensors",
        "save the model with diffusers: `model.save_pretrained(FOLDER)`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_folder_that_is_no_known_model_says_what_to_do(load, tmp_path, case):
    make, what, fix = REFUSED[case]
    make(tmp_path / "weights")
    assert faults(load, HEAD) == [(what, "demo.yaml:3:20", fix)]


def test_a_pipeline_is_its_components_and_no_component(load, tmp_path):
    pipeline(tmp_path / "weights")
    recipes = load(HEAD).recipes
    assert [each.component for each in recipes] == ["text_encoder", "unet", "vae_decoder"]
    assert [each.name for each in recipes[0].axes] == ["batch", "sequence"]
    ((what, _, fix),) = faults(
        load, "version: 1\nname: demo\ncomponents: {all: {model: {diffusers: weights}}}\n"
    )
    assert what == "weights holds a pipeline of several models, which are components of their own"
    assert fix.startswith("name one, `weights/unet`")


def test_a_folder_of_diffusers_named_as_transformers_says_the_key(load, tmp_path):
    folder(tmp_path / "weights", UNET)
    ((what, _, fix),) = faults(load, HEAD.replace("diffusers", "transformers"))
    assert what == "config.json is of diffusers' UNet2DConditionModel"
    assert fix == "write `model: {diffusers: ...}`"


def test_init_writes_a_component_for_each_model_and_the_loop(here, onnxbuild):  # noqa: F811
    pipeline(here / "weights/sd")
    said = onnxbuild("init", "weights/sd")
    assert said.code == 0, said.err
    assert said.out.startswith("wrote recipes/sd.yaml\nwrote recipes/sd_pipeline.py\n")
    assert "components: text_encoder, unet, vae_decoder\n" in said.out
    linted = onnxbuild("lint", "recipes/sd.yaml")
    assert linted.out.startswith("ok: sd@pipeline, sd@text_encoder, sd@unet, sd@vae_decoder ")
    text = (here / "recipes/sd.yaml").read_text()
    assert "  # int8: dynamic\n" in text, "a variant that needs nothing more"
    assert "prediction: epsilon" in text
    one = onnxbuild("init", "weights/sd/unet")
    assert one.code == 0, one.err
    assert "model:\n  diffusers: ../weights/sd/unet\n" in (here / "recipes/unet.yaml").read_text()


NOT_KNOWN = {
    "two text encoders": (
        {"index": INDEX | {"text_encoder_2": ["transformers", "CLIPTextModelWithProjection"]}},
        "names text_encoder (CLIPTextModel), unet (UNet2DConditionModel), vae (AutoencoderKL), text_encoder_2 ",
    ),
    "a schedule of flows": (
        {"scheduler": {"num_train_timesteps": 1000, "shift": 3.0}},
        "scheduler/scheduler_config.json has `beta_schedule: None`; the loop knows linear and scaled_linear",
    ),
}


@pytest.mark.parametrize("case", NOT_KNOWN)
def test_init_of_a_pipeline_that_the_loop_is_not_for_writes_nothing(here, onnxbuild, case):  # noqa: F811
    changes, words = NOT_KNOWN[case]
    pipeline(here / "sd", **changes)
    said = onnxbuild("init", "sd")
    assert said.code == 2
    assert words in said.err
    assert "fix: write the components and a loop of your own" in said.err
    assert not (here / "recipes").exists()


def test_init_that_fails_as_the_recipe_is_read_leaves_no_code(here, onnxbuild):  # noqa: F811
    pipeline(here / "sd")
    (here / "sd/vae/diffusion_pytorch_model.safetensors").unlink()
    said = onnxbuild("init", "sd")
    assert said.code == 2
    assert "the folder vae has no diffusion_pytorch_model.safetensors" in said.err
    assert not list((here / "recipes").glob("*"))


def test_a_change_of_the_vae_builds_no_step_of_the_unet(tmp_path):
    made = make_cheap_project(tmp_path / "project")
    pipeline(made.folder / "sd")
    assert made("init", "sd", "-o", "sd.yaml").code == 0
    made.write("sd_pipeline.py", CHEAP)
    ran = made("run", "sd.yaml")
    assert ran.code == 0, ran.err
    (made.folder / "sd/vae/diffusion_pytorch_model.safetensors").write_bytes(b"other")
    steps = [json.loads(line) for line in made("plan", "sd.yaml", "--json").out.splitlines()]
    changed = {each["step"].partition(":")[0] for each in steps if each["state"] != "cached"}
    assert changed == {"sd@vae_decoder", "sd@pipeline"}
