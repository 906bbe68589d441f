"""Folders of models with one layer and random weights, as transformers' `save_pretrained` writes them."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
_WAVE = SMALL | {
    "vocab_size": 20, "conv_dim": (8, 8), "conv_stride": (5, 4), "conv_kernel": (10, 6),
    "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2,
}  # fmt: skip


def bert(head: str, **changes: Any) -> Any:
    import transformers

    config = transformers.BertConfig(
        **SMALL | {"vocab_size": 60, "max_position_embeddings": 24} | changes
    )
    return getattr(transformers, head)(config)


def vit() -> Any:
    import transformers

    return transformers.ViTForImageClassification(
        transformers.ViTConfig(**SMALL, image_size=16, patch_size=8, num_labels=3)
    )


def detr() -> Any:
    import transformers

    backbone = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], out_features=["stage2"]
    )
    return transformers.DetrForObjectDetection(
        transformers.DetrConfig(
            backbone_config=backbone, use_timm_backbone=False, use_pretrained_backbone=False,
            backbone=None, d_model=16, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=32,
            decoder_ffn_dim=32, encoder_attention_heads=2, decoder_attention_heads=2, num_queries=5,
            num_labels=3,
        )
    )  # fmt: skip


def segformer() -> Any:
    import transformers

    return transformers.SegformerForSemanticSegmentation(
        transformers.SegformerConfig(
            num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 16],
            patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2],
            decoder_hidden_size=16, num_labels=3,
        )
    )  # fmt: skip


def mask2former() -> Any:
    import transformers

    backbone = transformers.SwinConfig(
        image_size=32, patch_size=4, embed_dim=8, depths=[1] * 4, num_heads=[1] * 4, window_size=4,
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )  # fmt: skip
    return transformers.Mask2FormerForUniversalSegmentation(
        transformers.Mask2FormerConfig(
            backbone_config=backbone, feature_size=32, mask_feature_size=32, hidden_dim=32,
            encoder_feedforward_dim=16, dim_feedforward=16, encoder_layers=1, decoder_layers=2,
            num_attention_heads=2, num_queries=5,
        )
    )  # fmt: skip


def wave(head: str, **changes: Any) -> Any:
    import transformers

    return getattr(transformers, head)(transformers.Wav2Vec2Config(**_WAVE | changes))


def spectrogram() -> Any:
    import transformers

    return transformers.ASTForAudioClassification(
        transformers.ASTConfig(
            **SMALL, patch_size=8, frequency_stride=8, time_stride=8, max_length=32,
            num_mel_bins=16, num_labels=3,
        )
    )  # fmt: skip


def saved(
    folder: Path, make: Callable[[], Any], *, files: Mapping[str, Any] | None = None, **how: Any
) -> Path:
    """Save a model with seeded weights, and JSON files next to it.

    Args:
        folder: Where to.
        make: Gives the model.
        files: Name -> content.
        how: Arguments of `save_pretrained`.
    """
    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    torch.manual_seed(0)
    model = make()
    with torch.no_grad():
        for each in model.parameters():
            if each.ndim == 1:  # ones and zeros hide what a layer norm or a bias does
                each.add_(0.1 * torch.randn_like(each))
    model.save_pretrained(folder, **how)
    for name, content in (files or {}).items():
        (folder / name).write_text(json.dumps(content))
    return folder
