"""Compute the reference of a pipeline: by the user's own, or by each operation's reference around the plain variant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.data.calibration_data import read_texts, text_array
from onnxbuild.onnxkit.data.feeds import Feeds, check_feeds, sizes_of
from onnxbuild.onnxkit.data.reference_feeds import SAMPLE, reference_feeds
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from onnxbuild.onnxkit.data.user_code import an, iterate_user
from onnxbuild.onnxkit.frameworks import np, onnxruntime
from onnxbuild.onnxkit.model.model_files import load_model
from onnxbuild.onnxkit.processing.pipeline import TOKENIZER, FittedPipeline, Pipeline, fit
from onnxbuild.onnxkit.processing.references import NOT_COMPUTED, compute
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.onnxkit.wordpiece.graph import TEXT

_APART = 16
"""Texts from the first of one point to the first of the next."""


@dataclass(frozen=True, slots=True)
class ProcessingReferenceParams:
    """Parameters of a pipeline's reference.

    Attributes:
        pipeline: The operations; None where `expected` is given.
        inputs: The pipeline's.
        axes: The pipeline's.
        expected: A callable that yields (raw inputs, expected outputs) of the user's own pipeline.
        samples: Most items of it.
        seed: Of raw inputs that are made, where there is no callable.
        session: How the variant's session runs it.
        texts: Raw input of strings -> a file of texts, one a line, that it is fed, where there is no callable.
    """

    pipeline: Pipeline | None
    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]
    expected: Entrypoint | None
    samples: int
    seed: int
    session: SessionSettings
    texts: dict[str, Entrypoint] = field(default_factory=dict)


def run(context: StepContext) -> Outcome:
    """Write points.json, one .npz a point (raw inputs, expected outputs), and a report of where they are from.

    Raises:
        StepError: The callable yields what the pipeline does not take or give; or it has an operation that
            nothing but a callable can be held against.
    """
    params: ProcessingReferenceParams = context.params
    writer = ReferenceWriter(context.output("reference"))
    points = _computed(context) if params.expected is None else _expected(context, params.expected)
    for point in points:
        writer.add(point)
    own = "each operation's reference in numpy, around the plain variant"
    report = {
        "held_against": own if params.expected is None else params.expected.target,
        "points": writer.finish(),
    }
    write_report(context.output("report"), report)
    return Outcome(report)


def _expected(context: StepContext, expected: Entrypoint) -> Iterator[ReferencePoint]:
    params: ProcessingReferenceParams = context.params
    count = 0
    for n, item in enumerate(islice(iterate_user(context, expected), params.samples)):
        place = f"{context.where} ({expected.target}, item {n})"
        if not isinstance(item, (tuple, list)) or len(item) != 2:  # noqa: PLR2004 - a pair
            raise StepError(
                f"found {an(item)}; expected a pair (raw inputs, expected outputs)",
                where=place,
                fix="yield {input name: array}, {output name: array}",
            )
        feeds = check_feeds(item[0], params.inputs, place)
        outputs = _outputs(item[1], place)
        sizes = sizes_of(feeds, params.inputs, place)
        _check_sizes(sizes, params.axes, place)
        yield ReferencePoint(f"{SAMPLE}{n:03}", sizes, feeds, outputs)
        count += 1
    if not count:
        raise StepError(
            f"{expected.target} yields no sample",
            where=context.where,
            fix="yield {input name: array}, {output name: array}, one a sample",
        )


def _check_sizes(sizes: Mapping[str, int], axes: Sequence[Axis], place: str) -> None:
    for axis in axes:
        if axis.name in sizes and not axis.takes(sizes[axis.name]):
            raise StepError(
                f"axis '{axis.name}' has size {sizes[axis.name]}; expected {axis.rule}",
                where=place,
                fix=f"widen `dynamic_axes: {{{axis.name}: ...}}`; of an image, `min_size` or `max_size`",
            )


def _outputs(found: object, place: str) -> dict[str, np.ndarray]:
    """The expected outputs; Python's floats become float32, as models give."""
    if not isinstance(found, Mapping) or not found:
        held = "an empty mapping" if isinstance(found, Mapping) else an(found)
        raise StepError(
            f"the expected outputs are {held}; expected a mapping of output name -> array",
            where=place,
            fix="yield {input name: array}, {output name: array}",
        )
    arrays = {str(name): np.asarray(value) for name, value in found.items()}
    return {
        name: array.astype(np.float32) if array.dtype == np.float64 else array
        for name, array in arrays.items()
    }


def _computed(context: StepContext) -> Iterator[ReferencePoint]:
    params: ProcessingReferenceParams = context.params
    assert params.pipeline is not None
    model = load_model(context.input("model"), weights="left")
    fitted = fit(context, params.pipeline, model)
    for each in fitted.operations:
        if each.name in NOT_COMPUTED:
            raise StepError(
                f"{each.name} has no reference of its own to be held against",
                where=f"{context.where}, {each.section}[{each.position}]",
                fix="write `expected: FILE.py:CALLABLE`, which yields raw inputs and what your own "
                "pipeline makes of them",
            )
    session = open_session(context.input("model"), settings=params.session, where=context.where)
    tokenizers = {
        name.removeprefix(TOKENIZER): open_session(context.input(name), where=context.where)
        for name in context.input_names
        if name.startswith(TOKENIZER)
    }
    made = reference_feeds(
        context,
        params.inputs,
        params.axes,
        points=(),
        seed=params.seed,
        samples=None,
        max_samples=0,
    )
    texts = {
        name: read_texts(*context.files(entrypoint)[0], context.where)
        for name, entrypoint in params.texts.items()
    }
    for number, (name, sizes, feeds) in enumerate(made):
        for text, lines in texts.items():
            start = number * _APART
            feeds[text] = text_array(lines, feeds[text].size, start).reshape(feeds[text].shape)
        outputs = _compute(session, fitted, feeds, context.where, tokenizers)
        yield ReferencePoint(name, sizes, feeds, outputs)


def _compute(
    session: onnxruntime.InferenceSession,
    fitted: FittedPipeline,
    feeds: Feeds,
    where: str,
    tokenizers: Mapping[str, onnxruntime.InferenceSession],
) -> dict[str, np.ndarray]:
    own = dict(feeds)
    for chain in fitted.chains:
        values = {chain.source.name: feeds[chain.source.name]}
        for each in chain.operations:
            taken = [values[name] for name in each.takes]
            if each.name == "tokenize":
                found = tuple(
                    run_session(tokenizers[each.prefix], {TEXT: taken[0]}, where).values()
                )
            else:
                found = compute(each, taken, ())
            values |= dict(zip(each.gives, found, strict=True))
        for feed in chain.feeds:
            value = values[feed.value]
            own[feed.input] = value.astype(feed.wanted) if feed.is_converted else value
    values = {**own, **run_session(session, own, where)}
    for each in fitted.results.operations:
        labels = fitted.labels.get(each.prefix, ())
        found = compute(each, [values[name] for name in each.takes], labels)
        values |= dict(zip(each.gives, found, strict=True))
    return {name: values[value] for name, value in fitted.results.outputs.items()}


KIND = StepKind(
    name="processing-reference",
    version=3,
    params=ProcessingReferenceParams,
    inputs=("model?", "tokenizer/*"),
    outputs={"reference": "reference", "report": "report"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
    host_bound=True,
    user_code=True,
    entrypoints=lambda params: (
        *(params.pipeline.entrypoints if params.pipeline else ()),
        *((params.expected,) if params.expected else ()),
        *params.texts.values(),
    ),
)
