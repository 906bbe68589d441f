"""Draft of a recipe for a pipeline of diffusers': a component for each model, and the loop over them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from onnxbuild.core.draft import Draft
from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.huggingface.diffusion import (
    HEIGHT,
    INDEX,
    SEQUENCE,
    WIDTH,
    read_diffusion_folder,
)
from onnxbuild.onnxkit.huggingface.folder import CONFIG, read_json

_MODELS = {
    "text_encoder": "CLIPTextModel",
    "unet": "UNet2DConditionModel",
    "vae": "AutoencoderKL",
}
"""Folder -> the class of its model, in the pipelines that the loop is for."""

_LOOP = "text_to_image.py.j2"
_SCHEDULER = "scheduler/scheduler_config.json"
_NOT_MODELS = ("scheduler", "tokenizer", "feature_extractor", "safety_checker")
_OWN_LOOP = "write the components and a loop of your own: docs/components.md, `pipeline`"


def draft_of_pipeline(path: Path, written: str, module: str) -> Draft | None:
    """Return the recipe of a folder with model_index.json; None of any other. No weights are read.

    Args:
        path: The folder.
        written: Its path, as the recipe names it.
        module: Name of the file next to the recipe that takes the draft's code.

    Raises:
        SourceError: It is another kind of pipeline than one of a text encoder, a UNet and a VAE.
        OSError: A file can't be read.
    """
    if not (path / INDEX).is_file():
        return None
    index = read_json(path / INDEX)
    found = {
        name: str(each[1])
        for name, each in index.items()
        if isinstance(each, list) and each and each[-1] and name not in _NOT_MODELS
    }
    if found != _MODELS:
        shown = ", ".join(f"{name} ({kind})" for name, kind in found.items())
        expected = ", ".join(f"{name} ({kind})" for name, kind in _MODELS.items())
        what = f"{INDEX} ({index.get('_class_name')}) names {shown}; the pipelines that are known have {expected}"
        raise SourceError(what, _OWN_LOOP)
    config = read_json(path / "text_encoder" / CONFIG)
    tokens, words = config["max_position_embeddings"], config["vocab_size"]
    unet = read_diffusion_folder(path / "unet")
    axes = {
        **unet.axes,
        SEQUENCE: {**unet.axes[SEQUENCE], "max": tokens, "example": min(16, tokens)},
    }
    height, width = axes[HEIGHT], axes[WIDTH]
    channels = next(each.shape[1] for each in unet.inputs if each.shape and each.name == "sample")
    sizes = [[each["example"], width["example"]] for each in ({"example": height["max"]}, height)]
    recipe: dict[str, Any] = {
        "dynamic_axes": axes,
        "components": {
            "text_encoder": {
                "model": {"transformers": f"{written}/text_encoder", "inputs": ["input_ids"]},
                "outputs": ["last_hidden_state"],
            },
            "unet": {
                "model": {"diffusers": f"{written}/unet"},
                "dummy_inputs": {
                    "encoder_hidden_states": {"from": "text_encoder.last_hidden_state"}
                },
            },
            "vae_decoder": {"model": {"diffusers": f"{written}/vae"}},
        },
        "pipeline": {
            "run": {
                "entrypoint": f"{module}:image",
                "args": _schedule(read_json(path / _SCHEDULER)),
            },
            "samples": {
                "entrypoint": f"{module}:samples",
                "args": {"tokens": tokens, "words": words, "channels": channels, "sizes": sizes},
            },
            "count": 2,
            "tolerances": {"fp32": {"atol": 0.02, "sqnr_db_min": 60}},
            "metric": f"{module}:psnr",
            "min": 25,
        },
    }
    comments = {
        "dynamic_axes": "height and width in latents: an eighth of the picture's, in most models",
        "pipeline.run": f"from {_SCHEDULER}; the loop is in {module}, yours to change",
        "pipeline.samples": "random ids and noise, at two sizes",
        "pipeline.tolerances": "of pictures by fp32 variants: a PSNR of 60 dB, or more",
        "pipeline.min": "the least PSNR, in dB, of variants of fewer bits",
    }
    code = (
        resources.files("onnxbuild.onnxkit.pipelines")
        .joinpath("templates", _LOOP)
        .read_text("utf-8")
    )
    return Draft(recipe, comments, code=code)


def _schedule(config: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of the loop.

    Raises:
        SourceError: The loop has no such schedule.
    """
    known = {
        "beta_schedule": ("linear", "scaled_linear"),
        "prediction_type": ("epsilon", "v_prediction"),
    }
    asked = {"prediction_type": "epsilon", **config}
    for key, values in known.items():
        if asked.get(key) not in values:
            what = f"{_SCHEDULER} has `{key}: {asked.get(key)}`; the loop knows {' and '.join(values)}"
            raise SourceError(what, _OWN_LOOP)
    return {
        "train_steps": asked["num_train_timesteps"],
        "beta_start": asked["beta_start"],
        "beta_end": asked["beta_end"],
        "beta_schedule": asked["beta_schedule"],
        "prediction": asked["prediction_type"],
        "offset": asked.get("steps_offset", 0),
        "ends_at_one": asked.get("set_alpha_to_one", False),
    }
