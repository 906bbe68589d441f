"""ONNX Runtime's transformer fusions: attention, LayerNorm and GELU become one node each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.model.external_data import map_weights, weights_in_reach
from onnxbuild.onnxkit.model.graphs import all_nodes

if TYPE_CHECKING:
    import onnx

_ENABLE = "enable_"

UNFUSABLE = (
    "ConstantSharing", "MatMulScaleFusion", "MatMulAddFusion", "MatmulTransposeFusion",
    "GemmActivationFusion", "BiasSoftmaxFusion",
)  # fmt: skip
"""ONNX Runtime's own optimizers that hide the patterns which the fusions look for: the list that
onnxruntime.transformers.optimizer.optimize_model turns off before them."""

BIAS_FUSIONS = ("BiasGeluFusion",)
"""Left out: the bias then stays with its MatMul, where the INT8 kernels take it. MiniLM 1 x 128:
INT8 3 % faster without, fp32 the same (AVX512-VNNI, ONNX Runtime 1.31)."""

_FAMILIES: Mapping[str, str] = {
    "albert": "bert", "camembert": "bert", "deberta": "bert", "deberta-v2": "bert",
    "distilbert": "bert", "electra": "bert", "ernie": "bert", "layoutlm": "bert",
    "mpnet": "bert", "nomic_bert": "bert", "roberta": "bert", "xlm-roberta": "bert",
    "beit": "vit", "deit": "vit", "dinov2": "vit", "swinv2": "swin", "mt5": "t5",
    "mbart": "bart", "gpt_neo": "gpt2", "clip_text_model": "clip", "clip_vision_model": "clip",
    "wav2vec2-conformer": "conformer",
}  # fmt: skip
"""transformers' `model_type` -> the family whose fusions fit."""


def known_model_types() -> tuple[str, ...]:
    """The families that this ONNX Runtime has fusions for."""
    from onnxruntime.transformers.optimizer import MODEL_TYPES

    return tuple(sorted(MODEL_TYPES))


def family_of(model_type: str) -> str | None:
    """The fusions that fit transformers' `model_type`, or None."""
    family = _FAMILIES.get(model_type, model_type)
    return family if family in known_model_types() else None


def fusion_flags(model_type: str) -> tuple[str, ...]:
    """The fusions of a family that can be left out one by one, in the order of FusionOptions.

    Args:
        model_type: One of `known_model_types`.
    """
    flags = vars(_fusion_options(model_type))
    return tuple(
        name.removeprefix(_ENABLE)
        for name, value in flags.items()
        if name.startswith(_ENABLE) and value is True and name != f"{_ENABLE}shape_inference"
    )


def fuse_transformer(
    model: onnx.ModelProto,
    *,
    model_type: str,
    num_heads: int,
    hidden_size: int,
    left_out: Collection[str] = (),
) -> onnx.ModelProto:
    """Fuse what is found; `model` is used up.

    Args:
        model: Optimized to `basic` without UNFUSABLE, weights loaded or mapped.
        model_type: One of `known_model_types`.
        num_heads: Attention heads; 0 finds them in the graph (bert only).
        hidden_size: Hidden size; 0 finds it in the graph (bert only).
        left_out: Of `fusion_flags`.

    Raises:
        Exception: The fusions met a graph they can't read.
    """
    from onnxruntime.transformers.optimizer import MODEL_TYPES, optimize_by_fusion

    options = _fusion_options(model_type)
    for name in left_out:
        setattr(options, f"{_ENABLE}{name}", False)
    model.producer_name = MODEL_TYPES[model_type][1]
    with weights_in_reach(model) as folder:
        fused: onnx.ModelProto = optimize_by_fusion(
            model, model_type, num_heads, hidden_size, options
        ).model
        if folder is not None:
            map_weights(fused, folder)
    return fused


def _fusion_options(model_type: str) -> Any:
    """Return options of all fusions but those that take a bias from its MatMul (BIAS_FUSIONS).

    ONNX Runtime's own choice for bert, `MaskIndexEnd`, counts a mask's ones: right only where all
    padding is at the end (comment in onnxruntime.transformers.fusion_options).
    """
    from onnxruntime.transformers.fusion_options import AttentionMaskFormat, FusionOptions

    options = FusionOptions(model_type)
    if options.attention_mask_format == AttentionMaskFormat.MaskIndexEnd:
        options.use_raw_attention_mask()
    options.enable_bias_gelu = False
    options.enable_bias_skip_layer_norm = False
    return options


def fused_operators(model: onnx.ModelProto) -> dict[str, int]:
    """Operators of ONNX Runtime's own domain -> how many nodes, sorted by name."""
    counts = Counter(node.op_type for node in all_nodes(model) if node.domain == "com.microsoft")
    return dict(sorted(counts.items()))
