"""Faults of `processing` that no schema finds."""

from collections.abc import Iterator

from onnxbuild.core.recipe import Axis
from onnxbuild.document.faults import Fault, hinted, nearest
from onnxbuild.document.node import dotted
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.requested import request_faults
from onnxbuild.features.settings.processing.options import SECTION, ProcessingOptions, operations
from onnxbuild.onnxkit.processing.checks import least_opset
from onnxbuild.onnxkit.processing.options import (
    PREPROCESS,
    ProcessingError,
    TokenizeOptions,
    ValueType,
    asked_of,
)
from onnxbuild.onnxkit.processing.pipeline import raw_inputs
from onnxbuild.onnxkit.processing.plan import InputChain, plan_inputs, plan_outputs, type_of
from onnxbuild.onnxkit.processing.references import NOT_COMPUTED

_FEWEST_IDS = 2
"""Ids of an empty text, [CLS] and [SEP] included."""


def faults(parts: Parts) -> Iterator[Fault]:
    """Yield all faults of the section."""
    options = parts.sections.get(SECTION)
    if not isinstance(options, ProcessingOptions) or parts.node(SECTION) is None:
        return
    if not options.requested:
        what = f"{SECTION} has neither preprocess nor postprocess"
        fix = f"write `{SECTION}: {{postprocess: [softmax: {{}}]}}`, or remove `{SECTION}`"
        yield Fault(what, parts.key_at(SECTION), fix)
        return
    yield from request_faults(parts, SECTION)
    counts = list(_not_one(parts, options))
    yield from counts
    if not counts:
        yield from _misfits(parts, options)


def _not_one(parts: Parts, options: ProcessingOptions) -> Iterator[Fault]:
    for section, position, operation in operations(options):
        names = list(asked_of(operation))
        if len(names) != 1:
            shown = " and ".join(names) or "no operation"
            what = f"{dotted((SECTION, section, position))} names {shown}; expected one operation"
            yield Fault(
                what, parts.at(SECTION, section, position), "write each as an item of its own"
            )


def _misfits(parts: Parts, options: ProcessingOptions) -> Iterator[Fault]:
    """The first operation that does not fit, and those that need what the recipe has not."""
    opset = parts.node("opset") if parts.sound("opset") else None
    for section, position, operation in operations(options):
        ((name, own),) = asked_of(operation).items()
        at = parts.at(SECTION, section, position)
        least = least_opset(own)
        if opset is not None and isinstance(opset.value, int) and opset.value < least:
            what = f"{name} needs opset {least}; the recipe has opset {opset.value}"
            yield Fault(what, at, f"write `opset: {least}`")
        if name in NOT_COMPUTED and parts.node(SECTION, "expected") is None:
            what = f"{name} has no reference of its own to be held against"
            fix = "add `expected: FILE.py:CALLABLE`, which yields raw inputs and what is expected of them"
            yield Fault(what, at, fix)
    if not parts.inputs or not parts.sound("dummy_inputs"):
        return
    inputs = {each.name: type_of(each) for each in parts.inputs.values()}
    try:
        chains = plan_inputs(options.preprocess, inputs)
        outputs = {name: ValueType() for name in parts.outputs}
        plan_outputs(options.postprocess, inputs, outputs, options.outputs)
    except ProcessingError as error:
        below = (error.section, error.position) if error.position is not None else ()
        at = parts.at(SECTION, *below)
        yield Fault(error.what, at, error.fix)
    else:
        yield from _other_lengths(parts, chains)
        yield from _odd_points(parts, options, chains)


def _other_lengths(parts: Parts, chains: tuple[InputChain, ...]) -> Iterator[Fault]:
    """Yield a fault of each tokenizer that gives more ids than the model takes, or fewer, or counts between."""
    for chain in chains:
        options = chain.operations[0].options if chain.operations else None
        if not isinstance(options, TokenizeOptions):
            continue
        at = parts.at(SECTION, PREPROCESS, chain.operations[0].position)
        for feed in chain.feeds:
            size = parts.inputs[feed.input].shape[1]
            axis = parts.axes.get(size) if isinstance(size, str) else None
            if axis is not None:
                found = _odd_for_axis(options, axis, feed.input)
            elif isinstance(size, int):
                found = _odd_for_size(options, size, feed.input)
            else:
                continue
            if found:
                what, fix = found
                yield Fault(what, at, fix)
                break


def _odd_for_axis(options: TokenizeOptions, axis: Axis, name: str) -> tuple[str, str] | None:
    """(what is wrong, a fix) where an axis does not take all numbers of ids."""
    most, pads = options.max_length, options.padding == "max_length"
    if most > axis.max:
        what = (
            f"tokenize gives up to {most} ids; '{name}' axis '{axis.name}' takes up to {axis.max}"
        )
        return what, f"write `max_length: {axis.max}`, or less"
    if pads and not axis.takes(most):
        what = f"tokenize gives {most} ids; '{name}' axis '{axis.name}' takes {axis.rule}"
        return what, f"write `max_length: {axis.nearest(most)}`"
    if not pads and (axis.multiple_of > 1 or axis.min > _FEWEST_IDS):
        what = f"tokenize pads to the longest of a batch, which may have {_FEWEST_IDS} ids; '{name}' axis '{axis.name}' takes {axis.rule}"
        return what, f"write `max_length: {axis.nearest(most)}, padding: max_length`"
    return None


def _odd_for_size(options: TokenizeOptions, size: int, name: str) -> tuple[str, str] | None:
    """(what is wrong, a fix) where a fixed size is not the number of ids."""
    if options.max_length > size:
        what = f"tokenize gives up to {options.max_length} ids; '{name}' takes {size}"
        return what, f"write `max_length: {size}`, or less"
    if options.padding != "max_length" or options.max_length < size:
        gives = (
            "pads to the longest of a batch"
            if options.padding != "max_length"
            else f"gives {options.max_length}"
        )
        what = f"'{name}' takes {size} ids; tokenize {gives}"
        return what, f"write `max_length: {size}, padding: max_length`"
    return None


def _odd_points(
    parts: Parts, options: ProcessingOptions, chains: tuple[InputChain, ...]
) -> Iterator[Fault]:
    if not parts.sound("dynamic_axes"):
        return
    _, axes = raw_inputs(chains, list(parts.inputs.values()), list(parts.axes.values()))
    known = {axis.name: axis for axis in axes}
    shapes = [size for each in parts.inputs.values() for size in each.shape]
    undeclared = {size for size in shapes if size not in parts.axes}  # a fault of its own
    for number, point in enumerate(options.points):
        for name, sizes in point.items():
            at = parts.at(SECTION, "points", number, name)
            if name in undeclared:
                continue
            if name not in known:
                what = f"{SECTION}.points names the axis '{name}'; the pipeline has {', '.join(known) or 'none'}"
                near = nearest(name, known)
                fix = f"write `{near}`" if near else "write one of these"
                key = parts.key_at(SECTION, "points", number, name)
                yield Fault(hinted(what, near), key, fix)
                continue
            for size in (sizes,) if isinstance(sizes, int) else sizes:
                if not known[name].takes(size):
                    what = f"{SECTION}.points has {name}={size}; expected {known[name].rule}"
                    yield Fault(what, at, f"write `{name}: {known[name].nearest(size)}`")
