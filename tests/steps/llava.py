"""A tiny LLaVA in three parts: images, ids with images to embeddings, and embeddings to the next token; and what runs them."""

from __future__ import annotations

import numpy as np

WORDS, IMAGE, PATCHES, SIZE = 64, 63, 4, 8
"""Number of tokens, the one that stands for a patch of an image, patches of an image, its height and width."""


def whole():
    """Return the model of transformers."""
    import torch
    from transformers import (
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
    )

    torch.manual_seed(0)
    vision = CLIPVisionConfig(
        hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, image_size=SIZE,
        patch_size=SIZE // 2, projection_dim=16, initializer_range=0.3,
    )  # fmt: skip
    text = LlamaConfig(
        vocab_size=WORDS, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, max_position_embeddings=128, initializer_range=0.3, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, tie_word_embeddings=False,
    )  # fmt: skip
    config = LlavaConfig(vision_config=vision, text_config=text, image_token_index=IMAGE)
    model = LlavaForConditionalGeneration(config).eval()
    with torch.no_grad():
        for each in model.model.multi_modal_projector.parameters():
            each.mul_(20)  # so that images change the tokens
    return model


def vision():
    """Return the tower and its projection: pixels (images, 3, SIZE, SIZE) -> (images, PATCHES, width)."""
    import torch

    class Vision(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = whole().model

        def forward(self, pixel_values):
            config = self.model.config
            found = self.model.vision_tower(pixel_values, output_hidden_states=True)
            layer = found.hidden_states[config.vision_feature_layer]
            return self.model.multi_modal_projector(layer[:, 1:])

    return Vision().eval()


def embedder():
    """Return the table of tokens, with each IMAGE replaced by the next patch."""
    import torch

    class Embedder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = whole().get_input_embeddings()

        def forward(self, input_ids, patches):
            found = self.table(input_ids)
            is_image = input_ids == IMAGE
            number = torch.cumsum(is_image.flatten().long(), 0).reshape(input_ids.shape)
            padded = torch.cat([torch.zeros_like(found[:1, 0]), patches])  # there may be none
            return torch.where(is_image[..., None], padded[number * is_image], found)

    return Embedder().eval()


def decoder():
    """Return the language model, which takes embeddings."""
    import torch

    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            model = whole()
            self.language_model, self.head = model.model.language_model, model.lm_head
            self.config = self.language_model.config

        def forward(
            self,
            inputs_embeds: torch.Tensor,
            attention_mask: torch.Tensor,
            position_ids: torch.Tensor,
            past_key_values: "Cache",  # noqa: F821, UP037
        ):
            found = self.language_model(
                inputs_embeds=inputs_embeds,
                attention_mask=attention_mask,
                position_ids=position_ids,
                past_key_values=past_key_values,
                use_cache=True,
            )
            return {"logits": self.head(found.last_hidden_state)}

    return Decoder().eval()


def samples():
    """Yield ids and pixels of texts with no image, one and two."""
    random = np.random.default_rng(0)
    for images in (0, 1, 2, 1, 2, 0):
        parts = [random.integers(3, IMAGE, random.integers(2, 6)) for _ in range(images + 1)]
        ids = np.concatenate([each for part in parts for each in (part, [IMAGE] * PATCHES)][:-1])
        yield {
            "ids": ids.astype(np.int64),
            "pixels": random.normal(size=(images, 3, SIZE, SIZE)).astype(np.float32),
        }


def describe(parts, sample, tokens=24):
    """Return the most likely tokens after a text with images, shape (tokens,)."""
    none = np.zeros((0, 32), np.float32)
    patches = none
    if len(sample["pixels"]):
        patches = parts.vision(sample["pixels"])["patches"].reshape(-1, none.shape[1])
    ids, past, found = sample["ids"][None], 0, []
    names = [f"{n}.{part}" for n in range(2) for part in ("key", "value")]
    state = {f"past_key_values.{name}": np.zeros((1, 2, 0, 8), np.float32) for name in names}
    for _ in range(tokens):
        embeds = parts.embedder(ids, patches)["embeds"]
        length = past + ids.shape[1]
        outputs = parts.decoder(
            inputs_embeds=embeds,
            attention_mask=np.ones((1, length), np.int64),
            position_ids=np.arange(past, length)[None],
            **state,
        )
        state = {f"past_key_values.{name}": outputs[f"present.{name}"] for name in names}
        ids, past, patches = outputs["logits"][:, -1:].argmax(-1), length, none
        found.append(int(ids[0, 0]))
    return {"tokens": np.array(found)}
