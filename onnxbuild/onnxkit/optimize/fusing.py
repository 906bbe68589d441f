"""Fusions of ONNX Runtime one after another, any of which may be left out."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.model_files import load_model, save_model
from onnxbuild.onnxkit.optimize.fusions import (
    BIAS_FUSIONS,
    UNFUSABLE,
    fuse_transformer,
    fused_operators,
    fusion_flags,
)
from onnxbuild.onnxkit.optimize.held_constants import HeldConstants
from onnxbuild.onnxkit.optimize.inserted_casts import rename_inserted_casts
from onnxbuild.onnxkit.optimize.norm_forms import fit_norms
from onnxbuild.onnxkit.optimize.offline_optimization import optimize_offline, optimizer_names
from onnxbuild.onnxkit.optimize.ort_tools import ToolError, call_tool
from onnxbuild.onnxkit.optimize.weight_products import split_weight_products

if TYPE_CHECKING:
    import onnx


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
    """

    held: HeldConstants
    scratch: Path
    level: Literal["basic", "extended"]
    family: Family | None
    where: str

    def names(self) -> tuple[str, ...]:
        """Return the fusions that can be left out, each before those that build on it.

        Raises:
            StepError: ONNX Runtime refuses the model.
        """
        folder = self._folder("names")
        basic = optimizer_names(self.held.source, folder, level="basic")
        transformer = () if self.family is None else self.family.names
        every = optimizer_names(self.held.source, folder, level=self.level)
        return tuple(dict.fromkeys((*basic, *transformer, *every)))

    def fuse(self, left_out: Collection[str] = ()) -> Fused:
        """Fuse the model without some fusions.

        Args:
            left_out: Of `names`.

        Raises:
            StepError: ONNX Runtime refuses the model.
        """
        remark = ""
        model = None
        if self.family is not None and self.family.model_type not in left_out:
            try:
                model = self._transformer(self.family, left_out)
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
                self.held.source,
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

    def _transformer(self, family: Family, left_out: Collection[str]) -> onnx.ModelProto:
        """The model with transformer fusions.

        Raises:
            ToolError: They fail.
            StepError: ONNX Runtime refuses what they made.
        """
        basic = optimize_offline(
            self.held.source,
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
