"""Draft of a recipe for a pipeline of diffusers': a component for each model, and the loop over them."""

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from onnxbuild.core.draft import Draft
from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.huggingface.diffusion import (
    HEIGHT,
    INDEX,
    OWN_LOOP,
    SEQUENCE,
    WIDTH,
    DiffusionPipeline,
    read_diffusion_folder,
)
from onnxbuild.onnxkit.huggingface.folder import read_json

_LOOP = "text_to_image.py.j2"
_SCHEDULER = "scheduler/scheduler_config.json"


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
    whole = read_diffusion_folder(path)
    assert isinstance(whole, DiffusionPipeline)
    tokens, height, width = (whole.axes[name] for name in (SEQUENCE, HEIGHT, WIDTH))
    drawn = {
        "tokens": tokens["max"],
        "words": whole.words,
        "channels": whole.channels,
        "sizes": [[height["max"], width["example"]], [height["example"], width["example"]]],
    }
    schedule = _schedule(read_json(path / _SCHEDULER))
    recipe: dict[str, Any] = {
        **whole.recipe(written),
        "pipeline": {
            "run": {"entrypoint": f"{module}:image", "args": schedule},
            "samples": {"entrypoint": f"{module}:samples", "args": drawn},
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
            raise SourceError(what, OWN_LOOP)
    return {
        "train_steps": asked["num_train_timesteps"],
        "beta_start": asked["beta_start"],
        "beta_end": asked["beta_end"],
        "beta_schedule": asked["beta_schedule"],
        "prediction": asked["prediction_type"],
        "offset": asked.get("steps_offset", 0),
        "ends_at_one": asked.get("set_alpha_to_one", False),
    }
