"""`preprocess` -> chains: who takes what, under which name; checked by type before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from onnxbuild.core.errors import did_you_mean
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.processing.chains import (
    Feed,
    InputChain,
    PlannedOperation,
    fed_by,
    type_of,
)
from onnxbuild.onnxkit.processing.checks import CHECKS
from onnxbuild.onnxkit.processing.options import (
    AudioOptions,
    ImageOptions,
    PreprocessOperation,
    asked_of,
)
from onnxbuild.onnxkit.processing.text_chain import text_chain
from onnxbuild.onnxkit.processing.text_options import TextOptions
from onnxbuild.onnxkit.processing.values import PREPROCESS, Layout, ProcessingError, ValueType

_SOURCES = {"image", "audio", "text"}
"""Operations that begin a chain."""

NONE_KNOWN: Mapping[str, ValueType] = MappingProxyType({})


def plan_inputs(
    operations: Sequence[PreprocessOperation],
    inputs: Mapping[str, ValueType],
    custom: Mapping[str, ValueType] = NONE_KNOWN,
) -> tuple[InputChain, ...]:
    """Chain the operations of `preprocess`.

    Args:
        operations: The list.
        inputs: The model's.
        custom: SECTION/POSITION of an operation `model` -> what its graph gives, where that is known.

    Raises:
        ProcessingError: They do not fit each other, or the model.
    """
    starts = [n for n, each in enumerate(operations) if _SOURCES & asked_of(each).keys()]
    if operations and starts[:1] != [0]:
        what = "preprocess does not begin with a raw input"
        raise ProcessingError(
            what, "write `- image: {}`, `- audio: {}` or `- text: {}` first", PREPROCESS, 0
        )
    chains: list[InputChain] = []
    ends = [*starts[1:], len(operations)] if starts else []
    for start, end in zip(starts, ends, strict=True):
        chain = _chain(operations, start, end, inputs, custom)
        twice = fed_by(chains) & fed_by([chain])
        if twice:
            what = f"preprocess makes the model's input '{min(twice)}' twice"
            raise ProcessingError(what, "write another input as `feeds`", PREPROCESS, start)
        chains.append(chain)
    _check_names(chains, starts, inputs)
    return tuple(chains)


def _check_names(
    chains: Sequence[InputChain], starts: Sequence[int], inputs: Mapping[str, ValueType]
) -> None:
    taken = inputs.keys() - fed_by(chains)
    for chain, start in zip(chains, starts, strict=True):
        name = chain.source.name
        if name in taken:
            what = f"the raw input is called '{name}', and so is another input"
            raise ProcessingError(what, f"write `name: {name}_raw`", PREPROCESS, start)
        taken.add(name)


def _chain(
    operations: Sequence[PreprocessOperation],
    start: int,
    end: int,
    inputs: Mapping[str, ValueType],
    custom: Mapping[str, ValueType],
) -> InputChain:
    ((word, options),) = asked_of(operations[start]).items()
    if isinstance(options, TextOptions):
        return text_chain(operations, start, end, inputs)
    feeds = _feeds(word, options, inputs, start)
    source, axes = _raw(options, feeds, inputs[feeds])
    layout: Layout = "NHWC" if isinstance(options, ImageOptions) else ""
    kind = replace(type_of(source), layout=layout, least=options.min_size)
    value, planned = source.name, []
    for position in range(start + 1, end):
        ((name, own),) = asked_of(operations[position]).items()
        if name == "tokenize":
            what = f"tokenize takes text; it stands behind `{word}`"
            raise ProcessingError(what, "write `- text: {}` before it", PREPROCESS, position)
        result = f"{PREPROCESS}/{position}/{name}"
        (after,) = checked((PREPROCESS, position), name, own, (kind,), custom)
        each = PlannedOperation(PREPROCESS, position, name, own, {value: kind}, {result: after})
        planned.append(each)
        value, kind = result, after
    _check_end(kind, feeds, inputs[feeds], end - 1)
    return InputChain(
        source, axes, (Feed(feeds, value, kind, inputs[feeds].dtype),), tuple(planned)
    )


def _feeds(
    word: str, options: ImageOptions | AudioOptions, inputs: Mapping[str, ValueType], position: int
) -> str:
    if not options.feeds and len(inputs) > 1:
        what = f"{word} does not say which input it feeds; the model has {', '.join(inputs)}"
        fix = f"write `{word}: {{feeds: {next(iter(inputs))}}}`"
        raise ProcessingError(what, fix, PREPROCESS, position)
    feeds = options.feeds or next(iter(inputs))
    if feeds not in inputs:
        what = (
            f"{word} feeds '{feeds}', which is no input of the model; it has {', '.join(inputs)}"
        )
        fix = did_you_mean(feeds, inputs) or f"write `feeds: {next(iter(inputs))}`"
        raise ProcessingError(what, fix, PREPROCESS, position)
    if not options.min_size <= options.example_size <= options.max_size:
        what = f"{word} has example_size {options.example_size}, which is not between min_size and max_size"
        raise ProcessingError(
            what, f"write `example_size: {options.max_size}`", PREPROCESS, position
        )
    return feeds


def _raw(
    options: ImageOptions | AudioOptions, feeds: str, model: ValueType
) -> tuple[DummyInput, tuple[Axis, ...]]:
    name = options.name or feeds
    batch = model.shape[0] if model.shape else 1
    axes = tuple(
        Axis(f"{name}_{side}", options.min_size, options.max_size, options.example_size)
        for side in (("height", "width") if isinstance(options, ImageOptions) else ("samples",))
    )
    if isinstance(options, AudioOptions):
        shape: tuple[int | str, ...] = (1 if batch is None else batch, axes[0].name)
        return DummyInput(name, "float32", shape, low=-1.0, high=1.0), axes
    shape = (1 if batch is None else batch, axes[0].name, axes[1].name, options.channels)
    return DummyInput(name, "uint8", shape, low=0, high=256), axes


def _check_end(found: ValueType, feeds: str, wanted: ValueType, position: int) -> None:
    """Check that the model takes what a chain ends in; float32 and float16 convert."""
    fits_dtype = not found.dtype or not wanted.dtype or found.dtype == wanted.dtype
    if not fits_dtype and {found.dtype, wanted.dtype} != {"float32", "float16"}:
        what = f"preprocess ends in {found}; the model's input '{feeds}' is {wanted}"
        fix = (
            "add `- rescale: {}`"
            if wanted.is_float
            else f"add `- cast: {{dtype: {wanted.dtype}}}`"
        )
        raise ProcessingError(what, fix, PREPROCESS, position)
    if found.shape is None or wanted.shape is None:
        return
    pairs = list(zip(found.shape, wanted.shape, strict=False))
    differs = any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs)
    if differs or len(found.shape) != len(wanted.shape):
        what = f"preprocess ends in {found}; the model's input '{feeds}' is {wanted}"
        is_last = found.layout == "NHWC" and found.shape[-1] == wanted.shape[1]
        other = "resize or crop to the model's size, with its number of `channels`"
        fix = "add `- to_nchw: {}`" if is_last else other
        raise ProcessingError(what, fix, PREPROCESS, position)


def checked(
    place: tuple[str, int],
    name: str,
    options: Any,
    types: tuple[ValueType, ...],
    custom: Mapping[str, ValueType],
) -> tuple[ValueType, ...]:
    """Check an operation in its place; returns the types of what it gives.

    Args:
        place: PREPROCESS or POSTPROCESS, and its position there.
        name: The operation's.
        options: Its options.
        types: Of what it takes.
        custom: As for `plan_inputs`.

    Raises:
        ProcessingError: It does not take that.
    """
    section, position = place
    if name == "model":
        return (custom.get(f"{section}/{position}", ValueType()),)
    try:
        return CHECKS[name](types, options)
    except ProcessingError as error:
        raise ProcessingError(error.what, error.fix, section, position) from error
