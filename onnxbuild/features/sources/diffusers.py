"""`model: {diffusers: FOLDER}`: a UNet, a VAE's decoder, or a text-to-image pipeline as diffusers' `save_pretrained` leaves it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onnxbuild.core.recipe import FRONTEND
from onnxbuild.core.source_error import SourceError
from onnxbuild.expansion.feature import SourceFormat
from onnxbuild.expansion.model_source import ModelSource, NoOptions, SourceFacts, source_facts
from onnxbuild.onnxkit.drafts.diffusion_draft import draft_of_pipeline
from onnxbuild.onnxkit.huggingface.diffusion import (
    DiffusionPipeline,
    is_diffusion_folder,
    read_diffusion_folder,
)
from onnxbuild.onnxkit.sources.outline import SourceOutline

NAME = "diffusers"


def _read(
    path: Path,
    looked: SourceOutline | DiffusionPipeline,
    _options: NoOptions,
    written: Mapping[str, Any],
) -> SourceFacts:
    """Read the facts of one model.

    Raises:
        SourceError: The folder holds several, and the recipe has the place of one.
    """
    if isinstance(looked, DiffusionPipeline):
        raise SourceError(
            f"{path.name} holds a pipeline of several models, which are components of their own",
            f"name one, `{path.name}/unet`; or write `model` next to no `components`, and all are there",
        )
    return source_facts(path, looked, written)


def _components(
    _path: Path,
    looked: SourceOutline | DiffusionPipeline,
    _options: NoOptions,
    written: Mapping[str, Any],
) -> Mapping[str, Any]:
    """Return the components of a pipeline; nothing for one model."""
    if not isinstance(looked, DiffusionPipeline):
        return {}
    return looked.recipe(written["model"][NAME])


FEATURE = SourceFormat(
    name=NAME,
    source=ModelSource(
        words="diffusion stable unet vae text-to-image",
        help="a folder that diffusers' `save_pretrained` wrote, relative to this file or `package:NAME/FOLDER`: of a UNet or a VAE "
        "(its decoder is built), which says inputs, axes, outputs and tolerances, as far as the recipe does not; or of a "
        "text-to-image pipeline, which says the components",
        look=read_diffusion_folder,
        read=_read,
        frontend=FRONTEND,
        is_folder=True,
        whole=draft_of_pipeline,
        components=_components,
        recognizes=is_diffusion_folder,
    ),
)
