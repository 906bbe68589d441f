"""Run a pipeline with PyTorch: its outputs, and every call of a component, which others are compared with."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import to_json
from onnxbuild.core.recipe import DUMMY_DATA, Axis, DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.data.feeds import Feeds, check_sizes
from onnxbuild.onnxkit.data.recorded_calls import CALLS
from onnxbuild.onnxkit.data.reference_feeds import SAMPLE
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from onnxbuild.onnxkit.export.torch_module import load_module, make_torch_deterministic, run_module
from onnxbuild.onnxkit.host.progress import counted
from onnxbuild.onnxkit.huggingface.encoder_decoder_modules import WHOLE
from onnxbuild.onnxkit.loaders import decoding
from onnxbuild.onnxkit.modules.pytorch_tokens import can_generate, generated, recomputed
from onnxbuild.onnxkit.pipelines.built_in import (
    BUILT_IN,
    CTC,
    TOKENS,
    SoundOptions,
    batches_of,
    dummy_rows,
    own_code,
)
from onnxbuild.onnxkit.pipelines.calls import (
    Caller,
    PipelineRun,
    by_name,
    parts_of,
    recorded,
    samples_of,
    uncalled,
)
from onnxbuild.onnxkit.pipelines.layout import ABOUT_FILE, CODE_FILE, call_name
from onnxbuild.onnxkit.pipelines.parts import PartsError, PipelineParts, read_values, write_values
from onnxbuild.onnxkit.reports import write_report

if TYPE_CHECKING:
    import torch

    from onnxbuild.onnxkit.pipelines.parts import Arrays


_END = "let `run` end its loop after so many calls, whatever tokens come, and keep samples to"


@dataclass(frozen=True, slots=True)
class ReferencePart:
    """A component; `model`, `axes` and `outputs` as in its recipe."""

    name: str
    model: Entrypoint
    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PipelineReferenceParams:
    """Parameters of a run of PyTorch.

    Attributes:
        run: `run(parts, sample)`.
        samples: A callable that yields samples; of a built-in `run` also files, or DUMMY_DATA.
        count: Number of samples.
        batches: Of a built-in `run`, whose samples are rows: how many are decoded together.
        sound: How samples in .wav files become rows.
    """

    parts: tuple[ReferencePart, ...]
    run: Entrypoint
    samples: Entrypoint
    count: int
    batches: tuple[int, ...] = field(default=(), metadata={"sparse": True})
    sound: SoundOptions | None = field(default=None, metadata={"sparse": True})


def run(context: StepContext) -> Outcome:
    """Write samples, the outputs of each (a reference's points), and the calls of each component (likewise).

    Tokens of a built-in `run` are those that PyTorch gives for each row alone: by transformers' `generate`, or computed anew
    for each token; or, of `ctc`, those of its frames.

    Raises:
        StepError: The callable or PyTorch fails on a sample, or a component is never called, or with sizes that it is not
            built for.
    """
    params: PipelineReferenceParams = context.params
    make_torch_deterministic()
    folder = context.output("reference")
    pipeline = PipelineRun(context, params.run)
    is_built_in = params.run.target in BUILT_IN
    rows = _rows(context)
    together = _batches(params, rows) if is_built_in else []
    try:
        write_values(folder, [[rows[n] for n in each] for each in together] or rows)
    except PartsError as error:
        what = f"{params.samples.target}: {error}"
        raise StepError(what, where=context.where, fix=error.fix) from error
    samples = read_values(folder)
    calls: list[tuple[str, Arrays, Arrays]] = []
    modules = {each.name: load_module(context, each.model) for each in params.parts}
    callers = {
        each.name: _caller(context, each, modules[each.name], pipeline.place)
        for each in params.parts
    }
    inputs = {each.name: each.inputs for each in params.parts}
    parts = parts_of(inputs, recorded(by_name(callers), calls))
    run_args: Mapping[str, Any] = params.run.args
    tokens = (
        _tokens(context, modules, parts_of(inputs, by_name(callers)), rows) if is_built_in else []
    )
    points, ends = ReferenceWriter(folder), []
    for number, sample in enumerate(counted(samples, "samples")):
        outputs = pipeline.outputs_of(parts, sample, number)
        if is_built_in:
            own = [tokens[n] for n in together[number]]
            outputs = {TOKENS: decoding.joined(own, run_args.get("blank", 0))}
        points.add(ReferencePoint(f"{SAMPLE}{number}", {}, {}, outputs))
        ends.append(len(calls))
    if never := list(uncalled([each.name for each in params.parts], calls)):
        raise StepError(
            f"{params.run.target} never calls the component '{never[0]}'",
            where=pipeline.place,
            fix=f"call `parts.{never[0]}(...)` in it, or take '{never[0]}' out of the recipe",
        )
    points.finish()
    for each in params.parts:
        below = folder / CALLS / each.name
        below.mkdir(parents=True)
        writer = ReferenceWriter(below)
        for number, (name, feeds, found) in enumerate(calls):
            if name == each.name:
                writer.add(ReferencePoint(call_name(number), {}, dict(feeds), found))
        writer.finish()
    code, why = _portable_code(context, params.run)
    (folder / CODE_FILE).write_bytes(code)
    write_report(folder, {"calls_until": ends}, ABOUT_FILE)
    notes = (f"run.py of the packages needs your own code: {why}",) if why else ()
    return Outcome({"samples": len(samples), "calls": len(calls)}, notes=(*points.notes(), *notes))


def _caller(
    context: StepContext, part: ReferencePart, module: torch.nn.Module, place: str
) -> Caller:
    """Return what runs a component's module, at the sizes alone that its graph is built for."""

    def call(feeds: Feeds) -> Arrays:
        try:
            check_sizes(feeds, part.inputs, part.axes, place, other=_END)
        except StepError as error:
            what = f"'{part.name}' is called at other sizes than its graph is for: {error.what}"
            raise StepError(what, where=place, fix=error.fix) from error
        return run_module(module, feeds, context.where, part.outputs, inputs=part.inputs).outputs

    return call


def _batches(params: PipelineReferenceParams, rows: Sequence[object]) -> list[tuple[int, ...]]:
    plan: Mapping[str, Any] = params.run.args["plan"]  # type: ignore[assignment]
    return batches_of(rows, params.batches, padded=any(each["mask"] for each in plan["inputs"]))


def _rows(context: StepContext) -> list[object]:
    """The samples as the user yields them, or random rows."""
    params: PipelineReferenceParams = context.params
    run_args: Mapping[str, Any] = params.run.args
    free = {
        n["name"]: n["shape"] for n in run_args.get("plan", {}).get("inputs", ()) if not n["mask"]
    }
    if params.samples.target != DUMMY_DATA:
        sound = None if params.sound is None else to_json(params.sound)
        shape = next(iter(free.values()), ())
        return samples_of(context, params.samples, params.count, sound=sound, shape=shape)
    own = {each.name: each for part in params.parts for each in part.inputs if each.name in free}
    axes = {each.name: each for part in params.parts for each in part.axes}
    return dummy_rows(tuple(own.values()), tuple(axes.values()), params.count)


def _tokens(
    context: StepContext,
    modules: Mapping[str, torch.nn.Module],
    parts: PipelineParts,
    rows: Sequence[object],
) -> list[list[int]]:
    """PyTorch's tokens for each row."""
    params: PipelineReferenceParams = context.params
    rules: dict[str, Any] = dict(params.run.args)
    if params.run.target == CTC:
        return [decoding.ctc(parts, [each], **rules)[TOKENS][0].tolist() for each in rows]
    plan, start, count = (rules.pop(each) for each in ("plan", "start", "tokens"))
    wholes = (getattr(each, WHOLE, None) for each in modules.values())
    whole = next((each for each in wholes if can_generate(each)), None)

    def tokens_of(row: object) -> list[int]:
        if whole is not None:
            feeds = decoding.stacked([row], plan["inputs"])
            return generated(whole, feeds, count, context.where, start=start, rules=rules)
        return recomputed(
            lambda text: next(decoding.logits(parts, [row], plan=plan, start=text, count=1)),
            start,
            count,
            rules,
        )

    return [tokens_of(each) for each in counted(rows, "rows")]


def _portable_code(context: StepContext, entrypoint: Entrypoint) -> tuple[bytes, str]:
    """Return the file of the callable, and why a package can't run it; one of both is empty."""
    if entrypoint.target in BUILT_IN:
        return Path(decoding.__file__).read_bytes(), ""
    place, _ = context.code(entrypoint)
    if not place.endswith(".py"):
        return b"", f"{entrypoint.target} is in an installed module"
    content = Path(place).read_bytes()
    for node in ast.walk(ast.parse(content)):
        names = []
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
        for name in names:
            if (top := name.partition(".")[0]) != "numpy" and top not in sys.stdlib_module_names:
                file = entrypoint.target.rpartition(":")[0]
                return b"", f"{file} imports {name}; one that imports NumPy alone is copied"
    return content, ""


KIND = StepKind(
    name="pipeline-reference",
    version=3,
    params=PipelineReferenceParams,
    inputs=(),
    outputs={"reference": "reference"},
    toolchain=("torch", "numpy"),
    run=run,
    user_code=True,
    entrypoints=lambda params: (
        *(each.model for each in params.parts),
        *own_code(params.run),
        params.samples,
    ),
)
