"""Models of LLaVA's form as three components: images to features, ids with features to embeddings, embeddings to the next token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.huggingface.decoders import PAST, SEQUENCE, decoder_outline
from onnxbuild.onnxkit.huggingface.encoder_decoder_modules import WHOLE
from onnxbuild.onnxkit.sources.outline import SourceOutline, SourceValue
from onnxbuild.onnxkit.sources.parts import BATCH

if TYPE_CHECKING:
    import torch

VISION, EMBEDDER, DECODER = PARTS = ("vision", "embedder", "decoder")

_ARCHITECTURE = "LlavaForConditionalGeneration"
_TOWERS = ("clip_vision_model", "siglip_vision_model")
"""Types of towers that give each image as many features, whatever its proportions."""

_FEATURES, _EMBEDS = "features", "embeds"
_IMAGES = "images"
_MOST_IMAGES = 8
_IMAGES_OF_A_TEXT = 2
"""Images that a first call has room for, next to the tokens of a text."""


def is_of_images_and_text(config: Mapping[str, Any]) -> bool:
    """Return whether a config is of a LLaVA with a tower that is known."""
    text, vision = config.get("text_config"), config.get("vision_config")
    return (
        config.get("architectures") == [_ARCHITECTURE]
        and isinstance(text, Mapping)
        and isinstance(vision, Mapping)
        and vision.get("model_type") in _TOWERS
    )


def components(model: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the components, and the pipeline over them, as a recipe has them.

    Args:
        model: `model` of the recipe, which names the whole folder.
        config: config.json.
    """
    given = {
        EMBEDDER: {_FEATURES: {"from": f"{VISION}.{_FEATURES}"}},
        DECODER: {"inputs_embeds": {"from": f"{EMBEDDER}.{_EMBEDS}"}},
    }
    return {
        "components": {
            part: {
                "model": {**model, "part": part},
                **({"dummy_inputs": given[part]} if part in given else {}),
            }
            for part in PARTS
        },
        "pipeline": {
            "run": "greedy",
            "samples": "dummy",
            "image_token": config.get("image_token_index", config.get("image_token_id", 32000)),
        },
    }


def part_outline(config: Mapping[str, Any], part: str, *, has_state: bool) -> SourceOutline:
    """Return what goes into a part, and what comes out.

    Args:
        part: One of PARTS.
        has_state: The recipe declares the state by itself.

    Raises:
        SourceError: The config does not say the sizes.
    """
    text, vision = config["text_config"], config["vision_config"]
    side, patch = (
        _size(vision, "vision_config", "image_size"),
        _size(vision, "vision_config", "patch_size"),
    )
    width, most = (
        _size(text, "text_config", key) for key in ("hidden_size", "max_position_embeddings")
    )
    patches = (side // patch) ** 2 + (vision["model_type"] == _TOWERS[0])
    patches -= config.get("vision_feature_select_strategy", "default") == "default"
    images = {"min": 1, "max": _MOST_IMAGES, "example": 2}
    if part == VISION:
        shape = (_IMAGES, vision.get("num_channels", 3), side, side)
        return SourceOutline(
            inputs=(SourceValue("pixel_values", "float32", shape),),
            outputs=(SourceValue(_FEATURES),),
            axes={_IMAGES: images},
        )
    found = decoder_outline(text, has_state=has_state or part == EMBEDDER)
    ids, *others = found.inputs
    axes = _axes_of(found.axes, most, _IMAGES_OF_A_TEXT * patches)
    if part == DECODER:
        embeds = SourceValue("inputs_embeds", "float32", (BATCH, SEQUENCE, width))
        return replace(
            found, inputs=(embeds, *others), axes=axes, outputs=(SourceValue("logits"),)
        )
    features = SourceValue(_FEATURES, "float32", (_IMAGES, patches, width))
    del axes[PAST]
    return SourceOutline(
        inputs=(ids, features),
        outputs=(SourceValue(_EMBEDS),),
        axes={**axes, _IMAGES: {**images, "min": 0}},
    )


def _axes_of(
    axes: Mapping[str, Mapping[str, int]], most: int, more: int
) -> dict[str, Mapping[str, int]]:
    """A decoder's axes with room for so many features in a first call, as far as its positions go."""
    new, past = axes[SEQUENCE], axes[PAST]
    longest = max(new["max"], min(new["max"] + more, most - past["example"]))
    deepest = max(past["max"], min(past["max"] + more, most - new["example"]))
    return {**axes, SEQUENCE: {**new, "max": longest}, PAST: {**past, "max": deepest}}


def _size(config: Mapping[str, Any], where: str, key: str) -> int:
    found = config.get(key)
    if type(found) is not int or found < 1:
        raise SourceError(
            f"config.json has no `{key}` in `{where}`, which other sizes depend on",
            f"write `{key}` there, as `AutoConfig.from_pretrained(FOLDER).{where}.{key}` has it",
        )
    return found


def part_of(model: torch.nn.Module, part: str) -> torch.nn.Module:
    """Return a part of a whole model."""
    return {VISION: _vision, EMBEDDER: _embedder, DECODER: _decoder}[part](model)


def _vision(model: torch.nn.Module) -> torch.nn.Module:
    """The tower and its projection; `get_image_features` would fix the number of images at export."""
    import torch

    config = model.config
    layers = config.vision_feature_layer
    layers = [layers] if isinstance(layers, int) else layers
    first = int(config.vision_feature_select_strategy == "default")

    class Vision(torch.nn.Module):  # type: ignore[misc] # torch is Any here
        def __init__(self) -> None:
            super().__init__()
            self.add_module(WHOLE, model)

        def forward(self, pixel_values: torch.Tensor) -> dict[str, torch.Tensor]:
            parts = self.model.model
            found = parts.vision_tower(pixel_values, output_hidden_states=True).hidden_states
            chosen = torch.cat([found[layer][:, first:] for layer in layers], -1)
            return {_FEATURES: parts.multi_modal_projector(chosen)}

    return Vision().eval()


def _embedder(model: torch.nn.Module) -> torch.nn.Module:
    """The table of tokens, with the next feature in place of each image token, as far as there are features."""
    import torch

    class Embedder(torch.nn.Module):  # type: ignore[misc] # torch is Any here
        def __init__(self) -> None:
            super().__init__()
            self.add_module(WHOLE, model)

        def forward(
            self, input_ids: torch.Tensor, features: torch.Tensor
        ) -> dict[str, torch.Tensor]:
            table = self.model.get_input_embeddings()
            found = table(input_ids)
            is_image = input_ids == self.model.config.image_token_id
            number = torch.cumsum(is_image.flatten().long(), 0).reshape(input_ids.shape)
            flat = features.flatten(0, 1)
            takes = is_image & (number <= flat.shape[0])
            padded = torch.cat([torch.zeros_like(table.weight[:1]), flat])  # there may be none
            return {_EMBEDS: torch.where(takes[..., None], padded[number * takes], found)}

    return Embedder().eval()


def _decoder(model: torch.nn.Module) -> torch.nn.Module:
    """The language model with its head, which takes embeddings."""
    import torch

    class Decoder(torch.nn.Module):  # type: ignore[misc] # torch is Any here
        def __init__(self) -> None:
            super().__init__()
            self.add_module(WHOLE, model)
            self.config = model.config.text_config

        def forward(
            self,
            inputs_embeds: torch.Tensor,
            attention_mask: torch.Tensor,
            position_ids: torch.Tensor | None = None,
            past_key_values: Cache | None = None,  # type: ignore[name-defined] # noqa: F821
        ) -> dict[str, Any]:
            found = self.model.model.language_model(
                inputs_embeds=inputs_embeds,
                attention_mask=attention_mask,
                position_ids=position_ids,
                past_key_values=past_key_values,
                use_cache=True,
            )
            return {"logits": self.model.lm_head(found.last_hidden_state)}

    return Decoder().eval()
