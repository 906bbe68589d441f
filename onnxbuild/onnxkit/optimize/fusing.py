"""ONNX Runtime's transformer fusions one after another, any of which may be left out."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.graphs import all_nodes
from onnxbuild.onnxkit.model.model_files import (
    load_model,
    map_weights,
    save_model,
    weights_in_reach,
)
from onnxbuild.onnxkit.model.scopes import all_names, name_maker, rename_reads, scopes
from onnxbuild.onnxkit.optimize.cached_attention import FUSION, FusedCaches
from onnxbuild.onnxkit.optimize.fusable_forms import fit_norms, split_weight_products
from onnxbuild.onnxkit.optimize.held_constants import HeldConstants
from onnxbuild.onnxkit.optimize.offline_optimization import (
    UNFUSABLE,
    ToolError,
    call_tool,
    optimize_offline,
    optimizer_names,
)

if TYPE_CHECKING:
    import onnx


_ENABLE = "enable_"

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


_INSERTED = "InsertedPrecisionFreeCast_"


def rename_inserted_casts(model: onnx.ModelProto) -> None:
    """Rename the values of these casts, in place.

    ONNX Runtime's CPU provider has no kernels of fp16 for most nodes: it inserts casts to float32 and back, and saves
    them in an optimized model. Where such a value becomes fp16 later, by `mode: fp16`, it inserts a cast of the
    same name as it loads that, and refuses the model for its two types.
    """
    make = name_maker(all_names(model))
    for scope in scopes(model):
        graph = scope.graph
        outputs = {value.name for value in graph.output}
        renamed = {
            name: make(f"cast_{name.removeprefix(_INSERTED)}")
            for node in graph.node
            for name in node.output
            if name.startswith(_INSERTED) and name not in outputs
        }
        for node in graph.node if renamed else ():
            rename_reads(node, renamed)
            node.output[:] = [renamed.get(name, name) for name in node.output]
        for value in graph.value_info:
            value.name = renamed.get(value.name, value.name)


@dataclass(frozen=True, slots=True)
class Family:
    """Family of transformer fusions, and the sizes that they need.

    Attributes:
        model_type: ONNX Runtime's name for them.
        num_heads: 0 finds it in the graph.
        hidden_size: 0 finds it in the graph.
    """

    model_type: str
    num_heads: int
    hidden_size: int

    @property
    def names(self) -> tuple[str, ...]:
        """`bert` for all of them, then `bert.attention` and so on."""
        flags = fusion_flags(self.model_type)
        return (self.model_type, *(f"{self.model_type}.{flag}" for flag in flags))


@dataclass(frozen=True, slots=True)
class Fused:
    """A fused model in canonical form, each operator in the form of its opset.

    Attributes:
        remark: Why there are no transformer fusions in it; empty where there are, or none were asked for.
    """

    model: onnx.ModelProto
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Fusing:
    """Fusion of one model.

    Transformer fusions come between ONNX Runtime's basic and extended ones. Where they fail or find
    nothing, ONNX Runtime's own optimizations stand.

    Attributes:
        held: The model, without the constants that are larger when they are folded.
        scratch: A folder to work in.
        level: How far to go.
        family: The transformer fusions to try; None for none.
        where: `recipe:step`, for messages.
        caches: The model with fused attention over its caches; None where that is not asked for.
    """

    held: HeldConstants
    scratch: Path
    level: Literal["basic", "extended"]
    family: Family | None
    where: str
    caches: FusedCaches | None = None

    def names(self) -> tuple[str, ...]:
        """Return the fusions that can be left out, each before those that build on it.

        Raises:
            StepError: ONNX Runtime refuses the model.
        """
        folder = self._folder("names")
        basic = optimizer_names(self.held.source, folder, level="basic")
        transformer = () if self.family is None else self.family.names
        every = optimizer_names(self.held.source, folder, level=self.level)
        caches = () if self.caches is None else (FUSION,)
        return tuple(dict.fromkeys((*caches, *basic, *transformer, *every)))

    def fuse(self, left_out: Collection[str] = ()) -> Fused:
        """Fuse the model without some fusions.

        Args:
            left_out: Of `names`.

        Raises:
            StepError: ONNX Runtime refuses the model.
        """
        remark = ""
        model = None
        source = self._source(left_out)
        if self.family is not None and self.family.model_type not in left_out:
            try:
                model = self._transformer(source, self.family, left_out)
                if not fused_operators(model):
                    remark = f"the '{self.family.model_type}' fusions found nothing to fuse"
                    model = None
            except (ToolError, StepError) as error:
                reason = error.what if isinstance(error, StepError) else str(error)
                remark = (
                    f"no transformer fusions: the '{self.family.model_type}' ones fail: {reason}"
                )
        if model is None:
            folder = optimize_offline(
                source,
                self._folder("plain"),
                level=self.level,
                disabled=tuple(left_out),
                where=self.where,
            )
            model = load_model(folder, weights="mapped")
        rename_inserted_casts(model)
        fit_norms(model)
        split_weight_products(model)
        self.held.put_back(model)
        canonicalize(model)
        return Fused(model, remark)

    def _source(self, left_out: Collection[str]) -> Path:
        if self.caches is None or FUSION in left_out:
            return self.held.source
        return self.caches.held.source

    def _transformer(
        self, source: Path, family: Family, left_out: Collection[str]
    ) -> onnx.ModelProto:
        """The model with transformer fusions.

        Raises:
            ToolError: They fail.
            StepError: ONNX Runtime refuses what they made.
        """
        basic = optimize_offline(
            source,
            self._folder("basic"),
            level="basic",
            disabled=(*UNFUSABLE, *left_out),
            where=self.where,
        )
        prefix = f"{family.model_type}."
        model = call_tool(
            lambda: fuse_transformer(
                load_model(basic, weights="mapped"),
                model_type=family.model_type,
                num_heads=family.num_heads,
                hidden_size=family.hidden_size,
                left_out=[n.removeprefix(prefix) for n in left_out if n.startswith(prefix)],
            )
        )
        if not fused_operators(model) or self.level == "basic":
            return model
        canonicalize(model)
        fused = self._folder("fused")
        save_model(model, fused)
        shutil.rmtree(basic)  # of a large model there would be four on disk at the end
        extended = optimize_offline(
            fused,
            self._folder("extended"),
            level="extended",
            disabled=(*BIAS_FUSIONS, *left_out),
            where=self.where,
        )
        return load_model(extended, weights="mapped")

    def _folder(self, name: str) -> Path:
        """An empty place in scratch: weights are appended to files that are there."""
        folder = self.scratch / name
        shutil.rmtree(folder, ignore_errors=True)
        return folder


@dataclass(frozen=True, slots=True)
class RefusedFusion:
    """A fusion that is left out.

    Attributes:
        name: Of the fusion.
        reason: What is wrong with the graph that it helps to make.
    """

    name: str
    reason: str


def spoiling_fusions(
    names: Sequence[str], fault: Callable[[Collection[str]], str]
) -> tuple[RefusedFusion, ...] | None:
    """Find the fusions without which the graph is right.

    The fewest fusions from the front that give a wrong graph end with one that spoils it (given those
    before it); a binary search finds it. It is left out, and the search goes on behind it.

    Args:
        names: The fusions, each before those that build on it.
        fault: Fusions that are left out -> what is wrong with the graph; empty where it is right.

    Returns: What to leave out, in order; None where the graph is wrong without any fusion.
    """
    if fault(names):
        return None
    found: list[RefusedFusion] = []
    kept, right = list(names), 0  # the graph is right with the first `right` of `kept`
    while reason := fault([each.name for each in found]):
        wrong = len(kept)
        while wrong - right > 1:
            middle = (right + wrong) // 2
            found_fault = fault([*(each.name for each in found), *kept[middle:]])
            if found_fault:
                wrong, reason = middle, found_fault
            else:
                right = middle
        found.append(RefusedFusion(kept.pop(wrong - 1), reason))
    return tuple(found)
