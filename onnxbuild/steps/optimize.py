"""Fuse and simplify a model with ONNX Runtime, to a portable level only."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from onnxbuild.core.errors import StepError, did_you_mean
from onnxbuild.core.params import option
from onnxbuild.core.step import REPORT_FILE, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.canonical import canonicalize
from onnxbuild.onnxkit.foreign import ToolError, call_tool
from onnxbuild.onnxkit.fusions import (
    BIAS_FUSIONS,
    UNFUSABLE,
    family_of,
    fuse_transformer,
    fused_operators,
    known_model_types,
)
from onnxbuild.onnxkit.graphs import all_nodes
from onnxbuild.onnxkit.model_files import file_bytes, load_model, save_model
from onnxbuild.onnxkit.offline import optimize_offline
from onnxbuild.onnxkit.sessions import check_loads

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True, slots=True)
class OptimizeOptions:
    """What is fused."""

    level: Literal["none", "basic", "extended"] = option(
        "extended",
        help="graph optimizations that are saved; higher ones are specific to a host and never "
        "shipped",
    )
    transformer: bool = option(True, help="try transformer fusions (attention, LayerNorm, GELU)")
    model_type: str = option(
        "auto",
        help="bert, gpt2, t5, vit, ...; auto reads the model's own config",
        pattern=r"^\w+$",
    )
    num_heads: int = option(0, help="attention heads; 0 finds them by itself", minimum=0)
    hidden_size: int = option(0, help="hidden size; 0 finds it by itself", minimum=0)


@dataclass(frozen=True, slots=True)
class OptimizeParams:
    """All that steers an optimization."""

    options: OptimizeOptions


@dataclass(frozen=True, slots=True)
class _Family:
    """Which fusions to try.

    Attributes:
        model_type: ONNX Runtime's name for them.
        num_heads: 0 finds it in the graph.
        hidden_size: 0 finds it in the graph.
    """

    model_type: str
    num_heads: int
    hidden_size: int


def run(context: StepContext) -> Outcome:
    """Optimize `model`; `config` holds what export saw of the model's own config.

    Transformer fusions come between ONNX Runtime's basic and extended ones. Where they fail, find
    nothing or don't fit, ONNX Runtime's own optimizations stand, and a note says so.

    Raises:
        StepError: The options name a model type without fusions, or ONNX Runtime refuses the
            model.
    """
    options: OptimizeOptions = context.params.options
    source = context.input("model")
    found = Counter(node.op_type for node in all_nodes(load_model(source, weights="left")))
    notes: list[str] = []
    model = None
    if options.level != "none":
        family = _family(context, notes, normalizes=any("LayerNorm" in op for op in found))
        if family is not None:
            model = _fused(context, family, notes)
        if model is None:
            level = options.level
            folder = optimize_offline(
                source, context.scratch / "plain", level=level, where=context.where
            )
            model = load_model(folder, weights="mapped")
    if model is None:
        model = load_model(source, weights="mapped")
    canonicalize(model)
    metrics = {
        "nodes_before": found.total(),
        "nodes_after": sum(1 for _ in all_nodes(model)),
        "fused": fused_operators(model),
    }
    save_model(model, context.output("model"))
    size = file_bytes(context.output("model"))
    return Outcome(metrics={**metrics, "size_bytes": size}, notes=tuple(notes))


def _family(context: StepContext, notes: list[str], *, normalizes: bool) -> _Family | None:
    """The fusions that fit: the options' own, else those that the model's config names."""
    options: OptimizeOptions = context.params.options
    if not options.transformer:
        return None
    config = json.loads((context.input("config") / REPORT_FILE).read_text())
    model_type: str | None = options.model_type
    if model_type == "auto":
        found = config.get("model_type")
        model_type = None if found is None else family_of(str(found))
        if found is not None and model_type is None and normalizes:  # not of a CNN
            notes.append(f"no transformer fusions: ONNX Runtime has none for '{found}' models")
    elif model_type not in known_model_types():
        known = known_model_types()
        raise StepError(
            f"`optimize.model_type` is '{model_type}'; expected auto or one of {', '.join(known)}",
            where=context.where,
            fix=did_you_mean(str(model_type), known) or "write `model_type: auto`",
        )
    if model_type is None:
        return None
    return _Family(
        model_type,
        options.num_heads or int(config.get("num_heads") or 0),
        options.hidden_size or int(config.get("hidden_size") or 0),
    )


def _fused(context: StepContext, family: _Family, notes: list[str]) -> onnx.ModelProto | None:
    """The model with transformer fusions, or None and a note."""
    options: OptimizeOptions = context.params.options
    scratch, where = context.scratch, context.where
    basic = optimize_offline(
        context.input("model"),
        scratch / "basic",
        level="basic",
        disabled=UNFUSABLE,
        where=where,
    )
    try:
        model = call_tool(
            lambda: fuse_transformer(
                load_model(basic, weights="mapped"),
                model_type=family.model_type,
                num_heads=family.num_heads,
                hidden_size=family.hidden_size,
            )
        )
        if not fused_operators(model):
            notes.append(f"the '{family.model_type}' fusions found nothing to fuse")
            return None
        canonicalize(model)
        save_model(model, scratch / "fused")
        shutil.rmtree(basic)  # of a large model there would be four on disk at the end
        return _finish(scratch / "fused", scratch / "extended", options.level, where)
    except (ToolError, StepError) as error:
        reason = error.what if isinstance(error, StepError) else str(error)
        notes.append(f"no transformer fusions: the '{family.model_type}' ones fail: {reason}")
        return None


def _finish(fused: Path, extended: Path, level: str, where: str) -> onnx.ModelProto:
    """What the recipe's level still adds to a fused model; opened by ONNX Runtime either way.

    Raises:
        StepError: ONNX Runtime refuses the fused model.
    """
    if level == "extended":
        optimize_offline(fused, extended, level="extended", disabled=BIAS_FUSIONS, where=where)
        return load_model(extended, weights="mapped")
    check_loads(fused, where)
    return load_model(fused, weights="mapped")


KIND = StepKind(
    name="optimize",
    version=1,
    params=OptimizeParams,
    inputs=("model", "config"),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "onnxruntime", "numpy", "sympy"),
    run=run,
    section="optimize",
    options=OptimizeOptions,
)
