"""Run a pipeline with PyTorch: its outputs, and every call of a component, which others are compared with."""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import to_json
from onnxbuild.core.recipe import DUMMY_DATA, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.data.feed_checks import odd_feeds, odd_kind, odd_values
from onnxbuild.onnxkit.data.feeds import Feeds, check_sizes
from onnxbuild.onnxkit.data.recorded_calls import CALLS
from onnxbuild.onnxkit.data.reference_feeds import SAMPLE
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from onnxbuild.onnxkit.export.torch_module import load_module, make_torch_deterministic, run_module
from onnxbuild.onnxkit.frameworks import np
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
    check_row,
    dummy_rows,
    own_code,
)
from onnxbuild.onnxkit.pipelines.calls import (
    Caller,
    PipelineRun,
    ReferencePart,
    by_name,
    parts_of,
    place_of,
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


_UNPADDED = " of one shape, and no mask leaves out what would pad them"
_END = "let `run` end its loop after so many calls, whatever tokens come, and keep samples to"


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
    together = _batches(context, rows) if is_built_in else []
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
    tokens: list[list[int]] = []
    if is_built_in:
        unrecorded = parts_of(inputs, by_name(callers))
        _check_ids(context, unrecorded, rows[0])
        tokens = _tokens(context, modules, unrecorded, rows)
    points, ends, elements = ReferenceWriter(folder), [], 0
    for number, sample in enumerate(counted(samples, "samples")):
        outputs = pipeline.outputs_of(parts, sample, number)
        _refuse_odd_outputs(outputs, f"{params.run.target}: sample {number}", pipeline.place)
        elements += sum(each.size for each in outputs.values())
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
    if not elements:
        raise StepError(
            f"{params.run.target} returned empty arrays alone, which equal any others",
            where=pipeline.place,
            fix="yield samples for which it gives something",
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
    return Outcome(
        {"samples": len(samples), "calls": len(calls)},
        notes=(*points.notes(), *_notes(params, together, why)),
    )


def _notes(
    params: PipelineReferenceParams, together: Sequence[tuple[int, ...]], why: str
) -> Iterator[str]:
    """Yield the sizes of batches of which there is none, and why a package can't run the callable."""
    tried = {len(each) for each in together}
    for size in params.batches:
        if size not in tried:
            yield f"no batch of {size} was tried: the samples make none{_UNPADDED}"
    if why:
        yield f"run.py of the packages needs your own code: {why}"


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
        found = run_module(module, feeds, context.where, part.outputs, inputs=part.inputs).outputs
        if odd := next((n for n, array in found.items() if odd_kind(array) == "NaN"), ""):
            raise StepError(
                f"component '{part.name}': output {odd_values(odd, found[odd])}{odd_feeds(feeds)}",
                where=place,
                fix="mend the model, or leave that sample out: nothing can be compared with a NaN",
            )
        return found

    return call


def _refuse_odd_outputs(outputs: Arrays, subject: str, place: str) -> None:
    """Fail on NaN and infinities that the callable itself makes; -inf passes, which masks logits."""
    for name, array in outputs.items():
        if odd_kind(array) in ("NaN", "inf"):
            raise StepError(
                f"{subject}: output {odd_values(name, array)}",
                where=place,
                fix="look for a division by zero or an overflow in it: no component gives a NaN",
            )


def _batches(context: StepContext, rows: Sequence[object]) -> list[tuple[int, ...]]:
    """The numbers of the rows of each batch.

    Raises:
        StepError: There is none.
    """
    params: PipelineReferenceParams = context.params
    plan: Mapping[str, Any] = params.run.args["plan"]  # type: ignore[assignment]
    padded = any(each["mask"] for each in plan["inputs"]) or (
        "embedder" in plan and bool(plan["decoder"]["masks"])
    )
    if found := batches_of(rows, params.batches, padded=padded):
        return found
    sizes = " or ".join(map(str, params.batches))
    raise StepError(
        f"{params.samples.target}: {len(rows)} samples make no batch of {sizes}{'' if padded else _UNPADDED}",
        where=context.where,
        fix="write `pipeline: {batches: [1]}`, or yield more samples"
        + ("" if padded else " of equal shapes"),
    )


def _rows(context: StepContext) -> list[object]:
    """The samples as the user yields them, or random rows.

    Raises:
        StepError: A sample is not what `run` takes.
    """
    params: PipelineReferenceParams = context.params
    run_args: Mapping[str, Any] = params.run.args
    if params.run.target not in BUILT_IN:
        samples = samples_of(context, params.samples, params.count)
        if not any(each.missing for part in params.parts for each in part.inputs):
            for number, sample in enumerate(samples):
                _refuse_odd_sample(context, sample, number)
        return samples
    plan = run_args["plan"]
    free = {each["name"]: each["shape"] for each in plan["inputs"] if not each["mask"]}
    inputs = {
        each.name: each for part in params.parts for each in part.inputs if each.name in free
    }
    # Of axes of one name the widest is the last, and counts: a text may have no image.
    every = sorted((each for part in params.parts for each in part.axes), key=lambda x: -x.min)
    axes = {each.name: each for each in every}
    if params.samples.target == DUMMY_DATA:
        return dummy_rows(tuple(inputs.values()), tuple(axes.values()), params.count, plan)
    sound = None if params.sound is None else to_json(params.sound)
    shape = next(iter(free.values()), ())
    rows = samples_of(context, params.samples, params.count, sound=sound, shape=shape)
    for number, row in enumerate(rows):
        where = f"{place_of(context, params.samples)} (sample {number})"
        check_row(row, tuple(inputs.values()), tuple(axes.values()), plan, where)
    return rows


def _refuse_odd_sample(context: StepContext, sample: object, number: int) -> None:
    """Fail on NaN and infinities in a sample; -inf passes, which masks logits."""
    params: PipelineReferenceParams = context.params
    if isinstance(sample, Mapping):
        sample = tuple(sample.values())
    if isinstance(sample, (list, tuple)):
        for each in sample:
            _refuse_odd_sample(context, each, number)
    elif isinstance(sample, (np.ndarray, np.generic, float)):
        array = np.asarray(sample)
        if odd_kind(array) in ("NaN", "inf"):
            raise StepError(
                f"{params.samples.target}: {odd_values(f'sample {number}', array)}",
                where=place_of(context, params.samples),
                fix="clean the data, or leave that sample out: such a value makes every comparison meaningless",
            )


def _check_ids(context: StepContext, parts: PipelineParts, row: object) -> None:
    """See that the ids that the recipe names are tokens of the model, by a first run.

    Raises:
        StepError: One is beyond the vocabulary, no token is left, or the model takes no row.
    """
    params: PipelineReferenceParams = context.params
    args: Mapping[str, Any] = params.run.args
    plan = args["plan"]

    def vocabulary_after(start: Sequence[int]) -> int:
        with _of_row(context, 0):
            steps = decoding.logits(parts, [row], plan=plan, start=start, count=1)
            return int(next(steps).shape[-1])

    keys = ("suppress_tokens", "begin_suppress_tokens")
    named = {key: args.get(key, ()) for key in keys}
    start = args.get("start", ())
    if params.run.target == CTC:
        feeds = decoding.stacked([row], plan["inputs"])
        with _of_row(context, 0):
            vocabulary = getattr(parts, plan["component"])(**feeds)[plan["logits"]].shape[-1]
        named["blank"] = (args["blank"],)
    else:
        try:
            vocabulary = vocabulary_after(start)
        except StepError:  # by a `start` that is no token, or by anything else
            if not any(start):
                raise
            vocabulary = vocabulary_after([0] * len(start))
            if max(start) < vocabulary:
                raise
            named["start"] = start
    for key, ids in named.items():
        if beyond := [each for each in ids if each >= vocabulary]:
            raise StepError(
                f"pipeline.{key} has {beyond[0]}; the model has {vocabulary} tokens, 0 to {vocabulary - 1}",
                where=context.where,
                fix=f"write another id in `{key}`",
            )
    if len({each for key in keys for each in named[key]}) == vocabulary:
        raise StepError(
            f"all {vocabulary} tokens are suppressed, and none can follow",
            where=context.where,
            fix="take some out of `pipeline: {suppress_tokens: ...}`",
        )


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
        run = PipelineRun(context, params.run)
        alone = (run.outputs_of(parts, [each], n) for n, each in enumerate(rows))
        return [each[TOKENS][0].tolist() for each in alone]
    plan, count, start = rules.pop("plan"), rules.pop("tokens"), rules.pop("start", ())
    wholes = (getattr(each, WHOLE, None) for each in modules.values())
    whole = next((each for each in wholes if can_generate(each)), None)

    def tokens_of(row: object) -> list[int]:
        if "embedder" in plan:  # its error says which ids a row lacks, that of `generate` doesn't
            next(decoding.logits(parts, [row], plan=plan, start=(), count=1))
        if whole is not None:
            feeds = _feeds_of_whole(row, plan)
            return generated(whole, feeds, count, context.where, start=start, rules=rules)
        return recomputed(
            lambda text: next(decoding.logits(parts, [row], plan=plan, start=text, count=1)),
            start,
            count,
            rules,
        )

    if "embedder" in plan and whole is None:
        raise StepError(
            "no component holds a whole model of transformers', whose `generate` says the tokens after images",
            where=context.where,
            fix="write `model: {transformers: FOLDER}`, or a callable `run(parts, sample)`",
        )
    found = []
    for number, row in enumerate(counted(rows, "rows")):
        with _of_row(context, number):
            found.append(tokens_of(row))
    return found


def _feeds_of_whole(row: Any, plan: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the arguments of `generate` for a row; without images there is none for them."""
    feeds = decoding.stacked([row], plan["inputs"])
    if "embedder" not in plan:
        return feeds
    ids = feeds[plan["decoder"]["ids"]]
    return {
        **{n: each for n, each in feeds.items() if each.size},
        "attention_mask": np.ones_like(ids),
    }


@contextlib.contextmanager
def _of_row(context: StepContext, number: int) -> Iterator[None]:
    """Name the row, and where it is from, in the error of a model that fails on it."""
    params: PipelineReferenceParams = context.params
    is_dummy = params.samples.target == DUMMY_DATA
    place = context.where if is_dummy else place_of(context, params.samples)
    try:
        yield
    except decoding.DecodingError as error:
        raise StepError(f"sample {number}: {error}", where=place, fix=error.fix) from error
    except StepError as error:
        what = f"sample {number}: {error.what}"
        where = place if error.where == context.where else error.where
        raise StepError(what, where=where, fix=error.fix) from error


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
    version=6,
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
