"""Fuse and simplify a model with ONNX Runtime, to a portable level only."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from onnxbuild.core.axis import sums_of
from onnxbuild.core.errors import StepError, did_you_mean
from onnxbuild.core.params import option
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.core.step import REPORT_FILE, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.data.states import decoding_points, growth_in
from onnxbuild.onnxkit.export.agreement import disagreement, disagreement_in_place, run_at_probes
from onnxbuild.onnxkit.export.probe_sizes import probe_points
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.graphs import all_nodes, opset_of
from onnxbuild.onnxkit.model.interface import interface_faults
from onnxbuild.onnxkit.model.model_files import file_bytes, load_model, save_model
from onnxbuild.onnxkit.model.opsets import checker_faults

if TYPE_CHECKING:
    import onnx

    from onnxbuild.onnxkit.optimize.cached_attention import FusedCaches
    from onnxbuild.onnxkit.optimize.fusing import Family, Fusing
    from onnxbuild.onnxkit.optimize.held_constants import HeldConstants


_NAMES_BYTES = 4096
"""Bytes that new names and shapes in a graph may take."""


@dataclass(frozen=True, slots=True)
class OptimizeOptions:
    """Graph optimizations before quantization."""

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
    attention: Literal["exported", "fused"] = option(
        "exported",
        sparse=True,
        help="attention over a `state` that grows: as exported, or one GroupQueryAttention node a layer; a state that is "
        "updated in place is always fused",
    )


@dataclass(frozen=True, slots=True)
class OptimizeParams:
    """Parameters of an optimization.

    Attributes:
        inputs: What the recipe feeds: the result and its source are run on values made from it.
        axes: At which sizes.
    """

    options: OptimizeOptions
    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]


def run(context: StepContext) -> Outcome:
    """Optimize `model`; `config` holds what export saw of the model's own config.

    The result is checked and compared with `model`; a fusion that spoils it is left out, and a note
    says which.

    Raises:
        StepError: The options name a model type without fusions, or ONNX Runtime refuses the
            model.
    """
    from onnxbuild.onnxkit.optimize.fusing import Fusing, fused_operators
    from onnxbuild.onnxkit.optimize.held_constants import hold_constants

    options: OptimizeOptions = context.params.options
    _check_level(context)
    source, target = context.input("model"), context.output("model")
    given = load_model(source, weights="left")
    found = Counter(node.op_type for node in all_nodes(given))
    notes: list[str] = []
    if options.level == "none":
        _save_as_it_is(source, target)
    else:
        family = _family(context, notes, normalizes=any("LayerNorm" in op for op in found))
        held = hold_constants(source, context.scratch, context.where)
        caches = _caches(context, held)
        fusing = Fusing(held, context.scratch, options.level, family, context.where, caches)
        judged = _Judged(context, fusing, given, target)
        notes += [*judged.save(), *_layer_notes(options, caches)]
        judged.check_in_place(notes)
    made = load_model(target, weights="left")
    metrics = {
        "nodes_before": found.total(),
        "nodes_after": sum(1 for _ in all_nodes(made)),
        "fused": fused_operators(made),
        "size_bytes": file_bytes(target),
    }
    return Outcome(metrics=metrics, notes=tuple(notes))


def _is_in_place(params: OptimizeParams) -> bool:
    return any(each.in_place for each in params.inputs)


def _check_level(context: StepContext) -> None:
    params: OptimizeParams = context.params
    if params.options.level == "none" and _is_in_place(params):
        raise StepError(
            "`optimize.level` is none, and a state that is updated in place needs fused attention",
            where=context.where,
            fix="remove `level: none`, or write `update: grows` in `state`",
        )


def _caches(context: StepContext, held: HeldConstants) -> FusedCaches | None:
    """The model with fused attention over its caches, if that is asked for and there is any."""
    from onnxbuild.onnxkit.optimize.cached_attention import fuse_caches

    params: OptimizeParams = context.params
    asked = params.options.attention == "fused" or _is_in_place(params)
    if not asked or growth_in(params.inputs) is None:
        return None
    phase("fusing attention over the caches")
    sums = sums_of([each.shape for each in params.inputs])
    points = (*probe_points(params.axes, sums), *decoding_points(params.inputs, params.axes))
    scratch = context.scratch / "caches"
    found = fuse_caches(held, params.inputs, points, scratch=scratch, where=context.where)
    return found if found.fused else replace(found, held=held)


def _layer_notes(options: OptimizeOptions, caches: FusedCaches | None) -> list[str]:
    if caches is None:
        asked = options.attention == "fused"
        return ["no `state` grows, so `attention: fused` changes nothing"] if asked else []
    if caches.layers and caches.fused == caches.layers:
        return []
    return [
        f"attention over the cache is fused in {caches.fused} of {caches.layers} layers; the others stay as exported"
    ]


def _save_as_it_is(source: Path, target: Path) -> None:
    model = load_model(source, weights="mapped")
    canonicalize(model)
    save_model(model, target)


def _family(context: StepContext, notes: list[str], *, normalizes: bool) -> Family | None:
    """The fusions that fit: the options' own, else those that the model's config names."""
    from onnxbuild.onnxkit.optimize.fusing import Family, family_of, known_model_types

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
    return Family(
        model_type,
        options.num_heads or int(config.get("num_heads") or 0),
        options.hidden_size or int(config.get("hidden_size") or 0),
    )


class _Judged:
    """A fused model that checks and computes what its source computes.

    Args:
        fusing: How it is fused.
        given: The source, its weights left.
        target: Where the model goes.
    """

    def __init__(
        self, context: StepContext, fusing: Fusing, given: onnx.ModelProto, target: Path
    ) -> None:
        self._scratch, self._where = context.scratch, context.where
        self._inputs, self._axes = context.params.inputs, context.params.axes
        self._source, self._fusing, self._target = context.input("model"), fusing, target
        self._opset = opset_of(given)
        self._quantized = _dequantizers(given)
        self._outputs = [value.name for value in given.graph.output]
        self._remark = ""

    def save(self) -> list[str]:
        """Write the model with all fusions that don't spoil it; returns remarks.

        Raises:
            StepError: ONNX Runtime refuses the source.
        """
        from onnxbuild.onnxkit.optimize.fusing import spoiling_fusions

        phase("running the model as it is")
        self._expected = run_at_probes(self._source, self._inputs, self._axes, self._where)
        reason = self._fault(())
        if not reason:
            return [self._remark] if self._remark else []
        spoiling = spoiling_fusions(self._fusing.names(), self._fault)
        if spoiling is None:
            self._clear()
            _save_as_it_is(self._source, self._target)
            return [f"the model stays as exported: even without any fusion {reason}"]
        remarks = [f"left out the fusion {each.name}: with it {each.reason}" for each in spoiling]
        return [*remarks, self._remark] if self._remark else remarks

    def check_in_place(self, notes: Sequence[str]) -> None:
        """See that the model that was saved computes the same with its state in buffers, where it is declared so.

        Raises:
            StepError: It does not.
        """
        if not any(each.in_place for each in self._inputs):
            return
        phase("running the model with its state in place")
        reason = disagreement_in_place(self._expected, self._target, self._inputs, self._where)
        if reason:
            because = "".join(f"; {each}" for each in notes)
            raise StepError(
                f"the model can't update its state in place: {reason}{because}",
                where=self._where,
                fix="write `update: grows` in `state`",
            )

    def _fault(self, left_out: Collection[str]) -> str:
        """Write the model without some fusions; what is wrong with it, empty where it is right."""
        self._clear()
        try:
            phase("fusing without " + ", ".join(sorted(left_out)) if left_out else "fusing")
            fused = self._fusing.fuse(left_out)
        except StepError as error:
            return error.what
        self._remark = fused.remark
        faults = interface_faults(fused.model, self._inputs, self._outputs, self._opset)
        if faults:
            return f"{faults[0].where}: {faults[0].what}"
        save_model(fused.model, self._target)
        if reason := self._growth(fused.model):
            return reason
        faults = checker_faults(self._target, self._scratch)
        if faults:
            return faults[0].what
        phase("comparing it with the model as it was")
        return disagreement(self._expected, self._target, self._where)

    def _growth(self, fused: onnx.ModelProto) -> str:
        """Say how quantized weights take more room in another form; empty where they do not."""
        before, after = file_bytes(self._source), file_bytes(self._target)
        if (
            _dequantizers(fused) >= self._quantized
            or after <= before + before // 100 + _NAMES_BYTES
        ):
            return ""
        return f"the quantized weights take more room: {before:,} bytes become {after:,}"

    def _clear(self) -> None:
        for path in self._target.iterdir():
            path.unlink()


def _dequantizers(model: onnx.ModelProto) -> int:
    return sum(node.op_type == "DequantizeLinear" for node in all_nodes(model))


KIND = StepKind(
    name="optimize",
    version=6,
    params=OptimizeParams,
    inputs=("model", "config"),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "onnxruntime", "numpy", "sympy"),
    run=run,
    host_bound=True,
)
