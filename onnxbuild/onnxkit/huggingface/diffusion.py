"""Folders of diffusers': what a UNet or a VAE takes, as its config says it, and the module that runs it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.external_code import external_code, message_of
from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.huggingface.folder import (
    CONFIG,
    DIFFUSERS_CLASS,
    folder_weights,
    is_of_diffusers,
    read_json,
)
from onnxbuild.onnxkit.sources.outline import FORM, SizeRange, SourceOutline, SourceValue
from onnxbuild.onnxkit.sources.parts import BATCH

if TYPE_CHECKING:
    import torch

_MODELS = {"text_encoder": "CLIPTextModel", "unet": "UNet2DConditionModel", "vae": "AutoencoderKL"}
"""Folder -> the class of its model, in the pipelines that are known."""

_NOT_MODELS = ("scheduler", "tokenizer", "feature_extractor", "safety_checker")

OWN_LOOP = "write the components and a loop of your own: docs/components.md, `pipeline`"
"""The fix for another pipeline."""

DIFFUSERS = "diffusers"
"""The fact FORM of such a folder."""

INDEX = "model_index.json"
"""The file that says which models a pipeline of diffusers' is made of."""

SEQUENCE, HEIGHT, WIDTH = "sequence", "height", "width"

_WEIGHTS = "diffusion_pytorch_model.safetensors"
_INSTALL = "pip install 'onnxbuild[diffusers]'"
_TOKENS = 77
"""Tokens of a prompt: CLIP's own, which every text-to-image UNet of diffusers' was trained on."""

_LARGEST = 64
"""Greatest height and width in latents, where a config says none: 512 pixels."""

_FURTHER = (
    "addition_embed_type",
    "class_embed_type",
    "encoder_hid_dim_type",
    "time_cond_proj_dim",
)
"""Keys of a UNet's config that ask for inputs besides sample, timestep and text."""

_CALLABLE = "load it by a callable: `model: {entrypoint: models/mine.py:load}`"


def is_diffusion_folder(path: Path) -> bool:
    """Return whether a folder has the form of a model or a pipeline of diffusers'."""
    return (path / INDEX).is_file() or is_of_diffusers(path)


@dataclass(frozen=True, slots=True)
class DiffusionPipeline:
    """A pipeline of a text encoder, a UNet and a VAE.

    Attributes:
        path: The folder of all.
        axes: Of all components.
        channels: Of latents.
        words: Rows of the text encoder's table.
    """

    path: Path
    axes: Mapping[str, Mapping[str, int]]
    channels: int
    words: int

    def recipe(self, written: str) -> dict[str, Any]:
        """Return the keys of a recipe that say the components.

        Args:
            written: The path of the folder, as the recipe names it.
        """
        text = {"encoder_hidden_states": {"from": "text_encoder.last_hidden_state"}}
        return {
            "dynamic_axes": dict(self.axes),
            "components": {
                "text_encoder": {
                    "model": {"transformers": f"{written}/text_encoder", "inputs": ["input_ids"]},
                    "outputs": ["last_hidden_state"],
                },
                "unet": {"model": {"diffusers": f"{written}/unet"}, "dummy_inputs": text},
                "vae_decoder": {"model": {"diffusers": f"{written}/vae"}},
            },
        }


def read_diffusion_folder(path: Path) -> SourceOutline | DiffusionPipeline:
    """Read the configs of one model, or of a pipeline.

    Raises:
        SourceError: The model is not known, or has no weights; or the pipeline has other models than those that are known.
        OSError: It is not there, or can't be read.
    """
    return _pipeline(path) if (path / INDEX).is_file() else _model(path)


def _pipeline(path: Path) -> DiffusionPipeline:
    index = read_json(path / INDEX)
    found = {
        name: str(each[1])
        for name, each in index.items()
        if isinstance(each, list) and each and each[-1] and name not in _NOT_MODELS
    }
    if found != _MODELS:
        shown = ", ".join(f"{name} ({kind})" for name, kind in found.items())
        expected = ", ".join(f"{name} ({kind})" for name, kind in _MODELS.items())
        what = f"{INDEX} ({index.get(DIFFUSERS_CLASS)}) names {shown}; the pipelines that are known have {expected}"
        raise SourceError(what, OWN_LOOP)
    text = read_json(path / "text_encoder" / CONFIG)
    unet = _model(path / "unet")
    tokens, words = text.get("max_position_embeddings"), text.get("vocab_size")
    channels = (unet.inputs[0].shape or (0, 0))[1]
    if type(tokens) is not int or type(words) is not int or type(channels) is not int:
        what = f"text_encoder/{CONFIG} does not say max_position_embeddings and vocab_size"
        raise SourceError(what, "save the pipeline again by `save_pretrained`")
    sequence = {"min": 1, "max": tokens, "example": min(unet.axes[SEQUENCE]["example"], tokens)}
    return DiffusionPipeline(path, {**unet.axes, SEQUENCE: sequence}, channels, words)


def _model(path: Path) -> SourceOutline:
    config = read_json(path / CONFIG)
    kind = str(config.get(DIFFUSERS_CLASS))
    if kind not in _OUTLINES:
        raise SourceError(
            f"{CONFIG} is of the class {kind!r:.60}; those that are known are {', '.join(_OUTLINES)}",
            _CALLABLE,
        )
    read = [path / CONFIG]
    weights = folder_weights(path, _WEIGHTS, read)
    if not weights:
        raise SourceError(
            f"the folder {path.name} has no {_WEIGHTS}",
            "save the model with diffusers: `model.save_pretrained(FOLDER)`",
        )
    inputs, output, least = _OUTLINES[kind](config)
    side = _side(config, least)
    return SourceOutline(
        inputs=inputs,
        outputs=(SourceValue(output),),
        axes={
            BATCH: {"min": 1, "max": 8, "example": 2},
            SEQUENCE: {"min": 1, "max": _TOKENS, "example": 16},
            HEIGHT: side,
            WIDTH: side,
        },
        ranges={name: SizeRange(least, None, least) for name in (HEIGHT, WIDTH)}
        if least > 1
        else {},
        is_strict=True,
        files=(path / CONFIG, *weights),
        read=tuple(read),
        recipe={
            "validate": {
                "fp32": {"atol": 1e-4, "rtol": 1e-4},
                "fp16": {"atol": 5e-2, "rtol": 1e-2},
            }
        },
        facts={FORM: DIFFUSERS, "class": kind},
    )


def _unet(config: Mapping[str, Any]) -> tuple[tuple[SourceValue, ...], str, int]:
    """(Inputs, output, the number that height and width are multiples of)."""
    further = [key for key in _FURTHER if config.get(key)]
    if further:
        raise SourceError(
            f"{CONFIG} has `{further[0]}: {config[further[0]]}`: this UNet takes more than a sample, a timestep and a text",
            _CALLABLE,
        )
    channels, text = config.get("in_channels"), config.get("cross_attention_dim")
    levels = config.get("block_out_channels")
    if type(channels) is not int or type(text) is not int or not isinstance(levels, list):
        raise SourceError(
            f"{CONFIG} does not say in_channels, cross_attention_dim and block_out_channels as numbers",
            _CALLABLE,
        )
    inputs = (
        SourceValue("sample", "float32", (BATCH, channels, HEIGHT, WIDTH)),
        SourceValue("timestep", "int64", (BATCH,), values={"low": 0, "high": 1000}),
        SourceValue("encoder_hidden_states", "float32", (BATCH, SEQUENCE, text)),
    )
    return inputs, "prediction", 2 ** (len(levels) - 1)


def _vae(config: Mapping[str, Any]) -> tuple[tuple[SourceValue, ...], str, int]:
    """(Inputs of the decoder, its output, the number that height and width are multiples of)."""
    channels = config.get("latent_channels")
    if type(channels) is not int:
        raise SourceError(f"{CONFIG} does not say latent_channels", _CALLABLE)
    return (SourceValue("latents", "float32", (BATCH, channels, HEIGHT, WIDTH)),), "image", 1


_OUTLINES: Mapping[
    str, Callable[[Mapping[str, Any]], tuple[tuple[SourceValue, ...], str, int]]
] = {"UNet2DConditionModel": _unet, "AutoencoderKL": _vae}


def _side(config: Mapping[str, Any], least: int) -> dict[str, int]:
    """Sizes of latents along height and width."""
    size = (
        config.get("sample_size")
        if config.get(DIFFUSERS_CLASS) == "UNet2DConditionModel"
        else None
    )
    most = max(size if type(size) is int else _LARGEST, least) // least * least
    example = max(least, most // 4 // least * least)
    sizes = {"min": least, "max": most, "example": example}
    return {**sizes, "multiple_of": least} if least > 1 else sizes


def load_diffusion(file: Path, arguments: Mapping[str, Any], where: str) -> torch.nn.Module:
    """The model of a folder, in float32, in a module that returns its output by name.

    Args:
        file: The folder's config.json.
        arguments: Facts of the source: class.
        where: `recipe:step`, for messages.

    Raises:
        StepError: diffusers is not there, or the weights are not those that config.json describes.
    """
    try:
        import diffusers
    except ImportError as error:
        what = f"a folder of diffusers' is loaded by diffusers, which can't be imported: {error}"
        raise StepError(what, where=where, fix=_INSTALL) from error
    kind = arguments["class"]

    def blamed(error: BaseException) -> StepError:
        first = next(iter(message_of(error).strip().splitlines()), "")
        return StepError(
            f"{file.parent.name} can't be loaded: {type(error).__name__}: {first}".replace(
                f"{file.parent}/", ""
            ),
            where=where,
            fix=f"check that the files are complete; load it once by itself: `diffusers.{kind}.from_pretrained(FOLDER)`",
        )

    with _quiet(), external_code(blamed):
        model, found = getattr(diffusers, kind).from_pretrained(
            file.parent,
            local_files_only=True,
            use_safetensors=True,
            low_cpu_mem_usage=False,
            output_loading_info=True,
        )
    if found["missing_keys"]:
        raise StepError(
            f"the folder has no weights for {min(found['missing_keys'])} of {kind}: they would be random",
            where=where,
            fix="save the folder again by `save_pretrained`",
        )
    return _MODULES[kind](model.float())


def _unet_module(model: torch.nn.Module) -> torch.nn.Module:
    import torch

    class Unet(torch.nn.Module):  # type: ignore[misc] # torch is Any here
        """Returns what the scheduler makes the next latents of: noise, or a velocity."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(
            self, sample: torch.Tensor, timestep: torch.Tensor, encoder_hidden_states: torch.Tensor
        ) -> dict[str, torch.Tensor]:
            found = self.model(sample, timestep, encoder_hidden_states, return_dict=False)
            return {"prediction": found[0]}

    return Unet().eval()


def _decoder_module(model: Any) -> torch.nn.Module:
    import torch

    class VaeDecoder(torch.nn.Module):  # type: ignore[misc] # torch is Any here
        """Pictures of latents as the UNet has them, values from -1 to 1."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, latents: torch.Tensor) -> dict[str, torch.Tensor]:
            scaled = latents / model.config.scaling_factor + (model.config.shift_factor or 0)
            return {"image": self.model.decode(scaled, return_dict=False)[0]}

    return VaeDecoder().eval()


_MODULES: Mapping[str, Callable[[Any], torch.nn.Module]] = {
    "UNet2DConditionModel": _unet_module,
    "AutoencoderKL": _decoder_module,
}


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the notices of diffusers out of the log: what matters of them is checked here."""
    from diffusers.utils import logging as notices

    level = notices.get_verbosity()
    notices.set_verbosity(logging.CRITICAL)
    try:
        yield
    finally:
        notices.set_verbosity(level)
