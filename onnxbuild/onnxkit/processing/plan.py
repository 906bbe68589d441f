"""Plan of a pipeline: chains before a model and results after it, checked by type before anything runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from onnxbuild.core.errors import did_you_mean
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.processing.checks import CHECKS
from onnxbuild.onnxkit.processing.options import (
    POSTPROCESS,
    PREPROCESS,
    AudioOptions,
    ImageOptions,
    Layout,
    NmsOptions,
    PoolOptions,
    PostprocessOperation,
    PreprocessOperation,
    ProcessingError,
    TextOptions,
    TokenizeOptions,
    TopKOptions,
    ValueType,
    asked_of,
)


@dataclass(frozen=True, slots=True)
class PlannedOperation:
    """One operation in its place.

    Attributes:
        section: PREPROCESS or POSTPROCESS.
        position: In that list.
        name: The operation's.
        options: Its options.
        takes: Names of values in the merged graph, and their types.
        gives: The same.
    """

    section: str
    position: int
    name: str
    options: Any
    takes: Mapping[str, ValueType]
    gives: Mapping[str, ValueType]

    @property
    def prefix(self) -> str:
        """Prefix of the names of its values and nodes."""
        return f"{self.section}/{self.position}"


@dataclass(frozen=True, slots=True)
class Feed:
    """A value that one of the model's inputs takes.

    Attributes:
        input: The model's input.
        value: Name of the value in the merged graph.
        type: What is known of it.
        wanted: The input's dtype; empty where it is not known.
    """

    input: str
    value: str
    type: ValueType
    wanted: str

    @property
    def is_converted(self) -> bool:
        """Whether the model takes another dtype."""
        return bool(self.type.dtype and self.wanted) and self.type.dtype != self.wanted


@dataclass(frozen=True, slots=True)
class InputChain:
    """Chain from a raw input to one of the model's inputs, or to several.

    Attributes:
        source: The raw input.
        axes: Those that it brings.
        feeds: What the model takes of it.
        operations: In order.
    """

    source: DummyInput
    axes: tuple[Axis, ...]
    feeds: tuple[Feed, ...]
    operations: tuple[PlannedOperation, ...]


def type_of(declared: DummyInput) -> ValueType:
    """The type of an input that a recipe declares."""
    return ValueType(declared.dtype, tuple(declared.shape))


def fed_by(chains: Sequence[InputChain]) -> set[str]:
    """The model's inputs that are made of raw ones."""
    return {feed.input for each in chains for feed in each.feeds}


_AXES = 2


def text_chain(
    operations: Sequence[PreprocessOperation],
    start: int,
    end: int,
    inputs: Mapping[str, ValueType],
) -> InputChain:
    """Chain `text` and `tokenize`.

    Args:
        operations: All of `preprocess`.
        start: Position of `text`.
        end: One past the last operation of the chain.

    Raises:
        ProcessingError: `tokenize` is not what follows, or the model has no input for what it gives.
    """
    text = operations[start].text
    found = [asked_of(each) for each in operations[start + 1 : end]]
    options = found[0].get("tokenize") if found else None
    if text is None or not isinstance(options, TokenizeOptions) or len(found) > 1:
        extra = next(iter(found[1])) if options is not None else "text"
        what = (
            f"{extra} takes no ids" if options is not None else "text has no `tokenize` behind it"
        )
        fix = (
            "remove it" if options is not None else "add `- tokenize: {file: tokenizer.json, ...}`"
        )
        position = min(start + 2 if options is not None else start + 1, end - 1)
        raise ProcessingError(what, fix, PREPROCESS, position)
    position = start + 1
    wanted = {
        "ids": options.ids,
        "mask": options.mask or ("attention_mask" if "attention_mask" in inputs else None),
        "types": options.type_ids or ("token_type_ids" if "token_type_ids" in inputs else None),
    }
    batch = None
    kinds = {f"{PREPROCESS}/{position}/{each}": each for each in wanted}
    feeds = []
    for value, each in kinds.items():
        name = wanted[each]
        if name is None:
            continue
        key = "type_ids" if each == "types" else each
        if name not in inputs:
            what = f"tokenize gives {each} to '{name}', which is no input of the model; it has {', '.join(inputs)}"
            fix = did_you_mean(name, inputs) or f"write `{key}: {next(iter(inputs))}`"
            raise ProcessingError(what, fix, PREPROCESS, position)
        taken = inputs[name]
        if taken.dtype not in {"", "int64", "int32"} or len(taken.shape or (1, 1)) != _AXES:
            what = f"tokenize gives int64 of two axes, batch and length; the model's input '{name}' is {taken}"
            raise ProcessingError(what, f"write another input as `{key}`", PREPROCESS, position)
        batch = taken.shape[0] if taken.shape and batch is None else batch
        feeds.append(Feed(name, value, ValueType("int64", (batch, None)), taken.dtype))
    if len({each.input for each in feeds}) < len(feeds):
        what = "tokenize gives two of its values to one input"
        raise ProcessingError(what, "name another input", PREPROCESS, position)
    source = DummyInput(text.name, "string", (1 if batch is None else batch,))
    gives = dict.fromkeys(kinds, ValueType("int64", (batch, None)))
    takes = {text.name: type_of(source)}
    planned = PlannedOperation(PREPROCESS, position, "tokenize", options, takes, gives)
    return InputChain(source, (), tuple(feeds), (planned,))


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


@dataclass(frozen=True, slots=True)
class Results:
    """Plan of the operations on the model's outputs.

    Attributes:
        operations: In order.
        outputs: Name of an output of the pipeline -> the value.
    """

    operations: tuple[PlannedOperation, ...]
    outputs: Mapping[str, str]


def plan_outputs(
    operations: Sequence[PostprocessOperation],
    inputs: Mapping[str, ValueType],
    outputs: Mapping[str, ValueType],
    wanted: Sequence[str] = (),
    custom: Mapping[str, ValueType] = NONE_KNOWN,
) -> Results:
    """Chain the operations of `postprocess`.

    Args:
        inputs: The model's, which some operations take, too.
        outputs: The model's; none where they are not known yet: then any name is one.
        wanted: The pipeline's outputs; empty takes results and outputs of the model that no operation
            takes, results first.
        custom: As for `plan_inputs`.

    Raises:
        ProcessingError: They do not fit each other, or the model.
    """
    names = _Names(inputs, outputs)
    planned = []
    for position, operation in enumerate(operations):
        ((name, options),) = asked_of(operation).items()
        taken = names.taken(name, options, position)
        types = checked((POSTPROCESS, position), name, options, tuple(taken.values()), custom)
        results = (
            (options.to, options.scores) if isinstance(options, TopKOptions) else (options.to,)
        )
        gives = {
            f"{POSTPROCESS}/{position}/{to}": kind for to, kind in zip(results, types, strict=True)
        }
        planned.append(PlannedOperation(POSTPROCESS, position, name, options, taken, gives))
        names.add(name, position, results, gives)
    return Results(tuple(planned), names.delivered(wanted))


class _Names:
    """Names that operations can refer to at a place in the list of `postprocess`."""

    def __init__(self, inputs: Mapping[str, ValueType], outputs: Mapping[str, ValueType]) -> None:
        self._known = bool(outputs)
        self._outputs = dict(outputs)
        self._values = {name: (name, kind) for name, kind in {**inputs, **outputs}.items()}
        self._results: dict[str, str] = {}
        self._used: set[str] = set()
        self._last = next(iter(outputs)) if len(outputs) == 1 else ""

    def taken(self, name: str, options: Any, position: int) -> dict[str, ValueType]:
        """Value -> type of all that an operation takes."""
        if isinstance(options, NmsOptions):
            asked = [options.boxes, options.scores]
        else:
            asked = [options.of or self._only(name, position)]
        if isinstance(options, PoolOptions) and options.mask:
            asked.append(options.mask)
        return dict(self._value(each, name, position) for each in asked)

    def _only(self, name: str, position: int) -> str:
        if self._last or not self._known:
            return self._last
        what = f"{name} does not say what it takes; the model has the outputs {', '.join(self._outputs)}"
        fix = f"write `{name}: {{of: {next(iter(self._outputs))}}}`"
        raise ProcessingError(what, fix, POSTPROCESS, position)

    def _value(self, asked: str, name: str, position: int) -> tuple[str, ValueType]:
        if asked in self._values:
            value, kind = self._values[asked]
            self._used.add(value)
            return value, kind
        if not self._known:
            return asked, ValueType()
        known = list(self._values)
        what = f"{name} takes '{asked}', which is neither a result before it nor an output or input of the model"
        fix = did_you_mean(asked, known) or f"write one of {', '.join(known)}"
        raise ProcessingError(what, fix, POSTPROCESS, position)

    def add(
        self, name: str, position: int, results: Sequence[str], gives: Mapping[str, ValueType]
    ) -> None:
        """Let names mean an operation's results from here on; a result that nothing took must keep its own."""
        for to, (value, kind) in zip(results, gives.items(), strict=True):
            before = self._results.get(to)
            if before is not None and before not in self._used:
                what = f"{name} gives '{to}', which is also the name of a result before it that no operation takes"
                key = "to" if to == results[0] else "scores"
                fix = f"write another name: `{name}: {{{key}: {to}_{position}}}`"
                raise ProcessingError(what, fix, POSTPROCESS, position)
            self._values[to] = (value, kind)
            self._results[to] = value
        self._last = results[0]

    def delivered(self, wanted: Sequence[str]) -> dict[str, str]:
        """Output -> value."""
        if wanted and self._known:
            for each in wanted:
                if each not in self._results and each not in self._outputs:
                    known = [*self._results, *self._outputs]
                    what = f"outputs names '{each}', which is no result and no output of the model"
                    fix = did_you_mean(each, known) or f"write one of {', '.join(known)}"
                    raise ProcessingError(what, fix)
            return {each: self._values[each][0] for each in wanted}
        left = {**self._results}
        left |= {name: name for name in self._outputs if name not in left}
        return {name: value for name, value in left.items() if value not in self._used}
