"""`model: {diffusers: FOLDER}`: a UNet or a VAE's decoder as diffusers' `save_pretrained` leaves it."""

from __future__ import annotations

from onnxbuild.core.recipe import FRONTEND
from onnxbuild.expansion.feature import SourceFormat
from onnxbuild.expansion.model_source import ModelSource
from onnxbuild.onnxkit.drafts.diffusion_draft import draft_of_pipeline
from onnxbuild.onnxkit.huggingface.diffusion import is_diffusion_folder, read_diffusion_folder

FEATURE = SourceFormat(
    name="diffusers",
    source=ModelSource(
        words="diffusion stable unet vae text-to-image",
        help="a folder of one model that diffusers' `save_pretrained` wrote, a UNet or a VAE (its decoder is built), relative to "
        "this file or `package:NAME/FOLDER`: it says inputs, axes, outputs and tolerances, as far as the recipe does not",
        look=read_diffusion_folder,
        frontend=FRONTEND,
        is_folder=True,
        whole=draft_of_pipeline,
        recognizes=is_diffusion_folder,
    ),
)
