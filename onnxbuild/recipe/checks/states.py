"""Whether what `state` declares has names of its own, and comes back."""

import re
from collections import Counter
from collections.abc import Iterator

from onnxbuild.core.axis import symbols_of
from onnxbuild.core.recipe import FROM, INPUT_NAME
from onnxbuild.core.state import GROWING, STATE
from onnxbuild.document.faults import Fault, choices, hinted, nearest
from onnxbuild.document.parts import Parts, key_needs_frontend
from onnxbuild.recipe.parts.states import PLACEHOLDER, WrittenState, written_states


def check_states(parts: Parts) -> Iterator[Fault]:
    """Yield the faults of `state`, as far as the parts without faults show them."""
    if parts.node(STATE) is None:
        return
    yield from key_needs_frontend(parts, parts.module_frontends, STATE)
    if parts.lacks("outputs"):
        what = f"{STATE} is written, and outputs is not; the new state follows the outputs"
        yield Fault(
            what, parts.key_at(STATE), "name what forward returns besides: `outputs: [logits]`"
        )
    taken = Counter((*parts.declared("dummy_inputs"), *parts.outputs))
    for state in written_states(parts).values():
        patterns = list(_patterns(state, parts))
        yield from patterns or _names(state, taken, parts)
        yield from _parameter(state, parts)
        yield from _update(state, parts)
        taken.update(each.input for each in state.tensors())


def _patterns(state: WrittenState, parts: Parts) -> Iterator[Fault]:
    for key, pattern in (("input", state.input), ("output", state.output), (FROM, state.source)):
        path = (STATE, state.name, key)
        found = PLACEHOLDER.findall(pattern)
        for name in found:
            if name not in state.each:
                near = nearest(name, state.each)
                what = f"{'.'.join(path)} names '{{{name}}}'"
                fix = f"write `{{{near}}}`" if near else "write a key of `each`"
                expected = f"expected {choices([f'{{{each}}}' for each in state.each])}"
                yield Fault(hinted(what, near, expected), parts.at(*path), fix)
        left = [name for name in state.each if name not in found]
        several = [name for name in left if len(state.each[name]) > 1]
        if pattern and several and set(found) <= set(state.each):
            shown = ", ".join(f"{{{name}}}" for name in several)
            what = f"{'.'.join(path)} is one name for several tensors: it lacks {shown}"
            yield Fault(
                what, parts.at(*path), f"write `{pattern}.{'.'.join(f'{{{n}}}' for n in several)}`"
            )


def _parameter(state: WrittenState, parts: Parts) -> Iterator[Fault]:
    if state.parameter in parts.declared("dummy_inputs"):
        what = f"'{state.parameter}' is in {STATE} and in dummy_inputs; forward takes it once"
        yield Fault(what, parts.key_at("dummy_inputs", state.parameter), "remove it here")


def _update(state: WrittenState, parts: Parts) -> Iterator[Fault]:
    path = (STATE, state.name)
    if state.update == "constant" and parts.node(*path, "output") is not None:
        what = f"{STATE}.{state.name} is constant and has an output"
        yield Fault(what, parts.key_at(*path, "output"), "remove it, or write `update: replaced`")
    if state.update != "constant" and state.source:
        what = f"{STATE}.{state.name} has `{FROM}`, and its update is {state.update}: what another component gives is constant"
        yield Fault(
            what, parts.key_at(*path, FROM), f"write `update: constant`, or remove `{FROM}`"
        )
    if state.update not in GROWING:
        if state.by:
            what = f"{STATE}.{state.name} is {state.update} and has `by`; only a state that grows has one"
            yield Fault(what, parts.key_at(*path, "by"), "remove it")
        return
    own = [each for each in parts.inputs.values() if not each.fed_by]
    growth = state.growth(own)
    if parts.sound("dummy_inputs") and growth is not None and growth.in_place:
        whole = {growth.axis, growth.by}
        if not any(set(symbols_of(d)) == whole for each in own for d in each.shape):
            what = f"{STATE}.{state.name} is in_place, and no input says how much of the buffer is in use"
            sizes = f"{growth.axis} + {growth.by}"
            fix = f"declare an input of all elements, such as a mask, `shape: [batch, {sizes}]`, or write `update: grows`"
            yield Fault(what, parts.key_at(*path, "update"), fix)
    if parts.sound("dummy_inputs") and growth is None:
        what = f"nothing says by which axis {STATE}.{state.name} grows"
        if state.by:
            what = f"{STATE}.{state.name} can't grow by '{state.by}': no input has this axis, a sum says another, or its shape has several axes"
        fix = "write the axis of the new elements, `by: sequence`, or both in a mask's shape, `[batch, past + sequence]`; or `update: replaced`"
        yield Fault(what, parts.at(*path, "by" if state.by else "shape"), fix)


def _names(state: WrittenState, taken: Counter[str], parts: Parts) -> Iterator[Fault]:
    """The first name of each pattern that can't be one, or that something else has.

    Args:
        taken: Names of inputs and outputs, those of all states' outputs, too -> how many have it.
    """
    for key, own in (("input", 0), ("output", 1)):
        path = (STATE, state.name, key)
        for name in filter(None, (getattr(each, key) for each in state.tensors())):
            what = f"{'.'.join(path)} gives the name '{name}'"
            if not re.fullmatch(INPUT_NAME, name):
                fix = "use letters, digits and '_', with single '.' and '/' between them"
                yield Fault(what, parts.at(*path), fix)
                break
            if taken[name] > own:
                what = f"{what}, which another input or output has"
                yield Fault(what, parts.at(*path), "write another pattern")
                break
