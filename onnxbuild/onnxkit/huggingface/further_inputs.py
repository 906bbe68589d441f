"""Inputs next to the ids of tokens: boxes, pixels, paths. Without them a model runs, and takes zeros for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.data.completed_axes import BATCH

_SEQUENCE = "sequence"
_BOXES = {"dtype": "int64", "shape": [BATCH, _SEQUENCE, 4], "fill": 0}
_NOT_DECLARED = {
    "layoutlmv2": "bbox and image",
    "lxmert": "visual_feats and visual_pos",
    "visual_bert": "visual_embeds",
}
"""Types of models -> inputs whose shapes config.json does not say."""


def check_further_inputs(config: Mapping[str, Any], own: Collection[str]) -> None:
    """Check that a model that takes more than text gets the rest of its inputs, too.

    Args:
        config: config.json.
        own: Inputs that the recipe declares itself.

    Raises:
        SourceError: It does not; `mend` declares them.
    """
    kind = str(config.get("model_type"))
    if kind in _NOT_DECLARED and not own:
        raise SourceError(
            f"a model of type {kind} also takes {_NOT_DECLARED[kind]}, which the task's inputs lack",
            "write them under `dummy_inputs`, or load the model by `model: {entrypoint: ...}`",
        )
    missing = {name: each for name, each in _further(kind, config).items() if name not in own}
    if not missing:
        return
    shown = ", ".join(
        f"{name}: {{dtype: {each['dtype']}, shape: [{', '.join(map(str, each['shape']))}], "
        f"{'fill: 0' if 'fill' in each else 'low: 0, high: 1'}}}"
        for name, each in missing.items()
    )
    raise SourceError(
        f"a model of type {kind} also takes {' and '.join(missing)}, which the task's inputs lack",
        f"declare them: `dummy_inputs: {{{shown}}}`, with real values from `reference: {{samples: ...}}`; for a "
        "model of text alone, name its `inputs`",
        mend={"dummy_inputs": missing},
    )


def _further(kind: str, config: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Inputs of a type of models, as `dummy_inputs`; of integers, 0 is a valid value of each."""
    match kind:
        case "layoutlm" | "lilt":
            return {"bbox": _BOXES}
        case "bros":
            return {"bbox": {**_BOXES, "dtype": "float32"}}
        case "layoutlmv3":
            return {"bbox": _BOXES, "pixel_values": _pixels(config, "input_size")}
        case "vilt":
            return {"pixel_values": _pixels(config, "image_size")}
        case "markuplm":
            depth = config.get("max_depth", 50)
            paths = {"dtype": "int64", "shape": [BATCH, _SEQUENCE, depth], "fill": 0}
            return {"xpath_tags_seq": paths, "xpath_subs_seq": paths}
        case "tapas":
            columns = config.get("type_vocab_sizes")
            count = len(columns) if isinstance(columns, list) else 7
            return {
                "token_type_ids": {"dtype": "int64", "shape": [BATCH, _SEQUENCE, count], "fill": 0}
            }
    return {}


def _pixels(config: Mapping[str, Any], side: str) -> Mapping[str, Any]:
    size = config.get(side, 224)
    shape = [BATCH, config.get("num_channels", 3), size, size]
    return {"dtype": "float32", "shape": shape, "low": 0, "high": 1}
